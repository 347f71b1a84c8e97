// SPDX-License-Identifier: Apache-2.0
// Private to the codec's .cpp files: Open vSwitch's headers, in the order they need, and
// owners for what its functions return.
#pragma once

#include <netinet/in.h>
#include <openvswitch/ofp-errors.h>
// The library's headers come after.
#include <openvswitch/match.h>
#include <openvswitch/meta-flow.h>
#include <openvswitch/ofp-actions.h>
#include <openvswitch/ofp-bundle.h>
#include <openvswitch/ofp-connection.h>
#include <openvswitch/ofp-flow.h>
#include <openvswitch/ofp-meter.h>
#include <openvswitch/ofp-msgs.h>
#include <openvswitch/ofp-port.h>
#include <openvswitch/ofp-switch.h>
#include <openvswitch/ofp-table.h>
#include <openvswitch/ofp-util.h>
#include <openvswitch/ofpbuf.h>
#include <openvswitch/vlog.h>

#include <bit>
#include <cstdint>

#include "dataplane/openflow/codec.hpp"

namespace sluice::openflow::ovs {

inline constexpr auto kProtocol = OFPUTIL_P_OF13_OXM;

constexpr std::uint16_t swap(std::uint16_t value) {
    return be16{value}.raw;
}
constexpr std::uint32_t swap(std::uint32_t value) {
    return be32{value}.raw;
}
constexpr std::uint64_t swap(std::uint64_t value) {
    return be64{value}.raw;
}

inline const ofp_header* as_header(MessageView message) {
    return reinterpret_cast<const ofp_header*>(message.data());
}
inline ErrorCode to_code(ofperr error) {
    const int experimenter = ofperr_get_vendor(error, OFP13_VERSION);
    const int code = ofperr_get_code(error, OFP13_VERSION);
    return {static_cast<std::uint16_t>(ofperr_get_type(error, OFP13_VERSION)),
            static_cast<std::uint16_t>(experimenter != 0 || code < 0 ? 0 : code),
            static_cast<std::uint32_t>(experimenter)};
}
inline WireError to_error(ofperr error) {
    return {to_code(error), ofperr_get_name(error)};
}

// An ofpbuf on the stack whose memory the library may move to the heap.
class Buffer {
  public:
    Buffer() { ofpbuf_use_stub(&buffer_, stub_, sizeof stub_); }
    ~Buffer() { ofpbuf_uninit(&buffer_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ofpbuf* get() { return &buffer_; }
    [[nodiscard]] ofpact* acts() const { return static_cast<ofpact*>(buffer_.data); }
    [[nodiscard]] std::size_t size() const { return buffer_.size; }

  private:
    ofpbuf buffer_{};
    alignas(8) std::uint8_t stub_[1024];
};

// Sets the length of a finished message, appends it to `out` and deletes it.
inline void append(Bytes& out, ofpbuf* message) {
    ofpmsg_update_length(message);
    const auto* data = static_cast<const std::uint8_t*>(message->data);
    out.insert(out.end(), data, data + message->size);
    ofpbuf_delete(message);
}
inline void set_xid(ofpbuf* message, Xid xid) {
    static_cast<ofp_header*>(message->data)->xid = swap(xid.value);
}

// The segments of a multipart reply under construction.
class Multipart {
  public:
    explicit Multipart(MessageView request) { ofpmp_init(&segments_, as_header(request)); }
    ~Multipart() { ofpbuf_list_delete(&segments_); }
    Multipart(const Multipart&) = delete;
    Multipart& operator=(const Multipart&) = delete;
    ovs_list* get() { return &segments_; }
    [[nodiscard]] ofpbuf* last() { return ofpbuf_from_list(ovs_list_back(&segments_)); }
    void append_to(Bytes& out) {
        while (!ovs_list_is_empty(&segments_))
            append(out, ofpbuf_from_list(ovs_list_pop_front(&segments_)));
    }

  private:
    ovs_list segments_;
};

}  // namespace sluice::openflow::ovs
