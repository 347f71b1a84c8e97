// SPDX-License-Identifier: Apache-2.0
// Problem documents (RFC 9457): how every request that fails is answered.
#pragma once

#include <string>
#include <string_view>

#include "controller/model/codec.hpp"
#include "dataplane/http/message.hpp"

namespace sluice::api {

// `type` is /problems/ and a word that stays for each status.
http::Response problem(unsigned status, std::string_view detail, const std::string& request_id,
                       const model::Problems& errors = {});
// Of checks that failed: 422 before 403, 404 and 409, so that a request that can never be
// right says so first.
http::Response problem_of(const model::Problems& errors, const std::string& request_id);
http::Response problem_of(const Error& error, const std::string& request_id);

}  // namespace sluice::api
