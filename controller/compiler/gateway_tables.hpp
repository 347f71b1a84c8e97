// SPDX-License-Identifier: Apache-2.0
// What one gateway should hold: its tables, meters and their digests.
#pragma once

#include <array>
#include <map>

#include "controller/compiler/desired_state.hpp"
#include "dataplane/openflow/tables.hpp"

namespace sluice::compiler {

// The tables that the controller programs; the others (0, the gateway's own, and those of
// later releases) it leaves alone.
inline constexpr std::array<std::uint8_t, 13> kProgrammedTables = {
    openflow::kVni,           openflow::kSource,   openflow::kLocal,        openflow::kEgressGroup,
    openflow::kEgressRule,    openflow::kRoute,    openflow::kElasticIp,    openflow::kNatGateway,
    openflow::kPublicAddress, openflow::kEndpoint, openflow::kIngressGroup, openflow::kIngressRule,
    openflow::kHost};

// Cost: one look-up in an ordered map per change; digests are kept up with each.
class GatewayTables final : public DesiredState {
  public:
    [[nodiscard]] std::uint64_t revision() const override { return revision_; }
    void visit(std::uint8_t table, const EntryVisitor& visitor) const override;
    void visit_meters(const MeterVisitor& visitor) const override;
    [[nodiscard]] std::vector<openflow::TableDigest> digests() const override;

    [[nodiscard]] const openflow::Entry* find(const openflow::EntryKey& key) const override;
    [[nodiscard]] const openflow::Meter* find(MeterId id) const override;
    [[nodiscard]] std::size_t size() const;

    void put(openflow::Entry entry);
    void remove(const openflow::EntryKey& key);
    void put(const openflow::Meter& meter);
    void remove(MeterId id);
    void set_revision(std::uint64_t revision) { revision_ = revision; }

  private:
    std::uint64_t revision_ = 0;
    std::map<openflow::EntryKey, openflow::Entry> entries_;
    std::map<MeterId, openflow::Meter> meters_;
    std::array<openflow::TableDigest, 256> digests_{};  // [255]: the meters
};

}  // namespace sluice::compiler
