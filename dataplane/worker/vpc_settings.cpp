// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/vpc_settings.hpp"

namespace sluice::worker {

namespace {

using openflow::Setting;
using session::Timeout;

struct TimeoutSetting {
    Setting setting;
    Timeout timeout;
};
constexpr TimeoutSetting kTimeouts[] = {
    {Setting::tcp_established, Timeout::tcp_established},
    {Setting::tcp_transitory, Timeout::tcp_transitory},
    {Setting::tcp_time_wait, Timeout::tcp_time_wait},
    {Setting::udp, Timeout::udp},
    {Setting::udp_unanswered, Timeout::udp_unanswered},
    {Setting::icmp, Timeout::icmp},
    {Setting::sctp, Timeout::sctp},
    {Setting::sctp_unanswered, Timeout::sctp_unanswered},
    {Setting::other, Timeout::other},
    {Setting::other_unanswered, Timeout::other_unanswered},
};
static_assert(std::size(kTimeouts) == session::kTimeouts);

}  // namespace

VpcLimits limits_of(const openflow::Settings& settings) {
    const auto get = [&](Setting setting) { return settings.get(setting).value_or(0); };
    return {{get(Setting::connections), get(Setting::half_open), get(Setting::new_per_second)},
            {get(Setting::endpoint_connections), get(Setting::endpoint_half_open),
             get(Setting::endpoint_new_per_second)}};
}

session::ZoneValues values_of(const openflow::Settings& settings) {
    session::ZoneValues values;
    for (const TimeoutSetting& one : kTimeouts)
        if (const auto seconds = settings.get(one.setting))
            values.timeouts[one.timeout] = session::ticks(*seconds);
    const auto set = [&](Setting setting, auto& value) {
        if (const auto given = settings.get(setting))
            value = static_cast<std::remove_reference_t<decltype(value)>>(*given);
    };
    set(Setting::mid_stream, values.mid_stream);
    set(Setting::mss_clamping, values.mss_clamping);
    set(Setting::tcp_window_check, values.tcp_window_check);
    return values;
}

void apply_settings(session::Sessions& sessions, policy::ZoneSlot zone,
                    const openflow::Settings& settings) {
    sessions.limits.set(zone.value, limits_of(settings));
    sessions.zones.set(zone.value, values_of(settings));
    sessions.fragments.set(zone.value, settings.get(Setting::fragments).value_or(0),
                           settings.get(Setting::endpoint_fragments).value_or(0));
}

}  // namespace sluice::worker
