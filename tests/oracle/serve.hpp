// SPDX-License-Identifier: Apache-2.0
// How a driver talks with its oracle: a JSON request a line, a JSON answer a line.
#pragma once

#include <boost/json.hpp>
#include <exception>
#include <iostream>
#include <string>

namespace sluice::oracle {

// Until the input ends. `answer`: request → answer; what it throws is answered as an error.
template <class Answer>
void serve(Answer answer) {
    std::ios::sync_with_stdio(false);
    for (std::string line; std::getline(std::cin, line);) {
        boost::json::object reply;
        try {
            reply = answer(boost::json::parse(line));
        } catch (const std::exception& problem) {
            reply = {{"error", problem.what()}};
        }
        std::cout << boost::json::serialize(reply) << std::endl;
    }
}

}  // namespace sluice::oracle
