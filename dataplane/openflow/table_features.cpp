// SPDX-License-Identifier: Apache-2.0
// OFPMP_TABLE_FEATURES out of the table descriptions (OpenFlow 1.3.5 section 7.3.5.5).
#include "dataplane/openflow/entry_codec.hpp"
#include "dataplane/openflow/switch_codec.hpp"

namespace sluice::openflow {
namespace {

void add(mf_bitmap& fields, mf_field_id id) {
    constexpr std::size_t kBits = 8 * sizeof fields.bm[0];
    fields.bm[id / kBits] |= 1UL << (id % kBits);
}

// Fields that have one carrier for IPv4 and another for IPv6.
bool has_families(Field field) {
    return ovs::carrier(field, false) != ovs::carrier(field, true);
}

void add_both(mf_bitmap& fields, Field field) {
    add(fields, ovs::carrier(field, false));
    add(fields, ovs::carrier(field, true));
}

ofputil_table_features describe(const TableSchema& schema) {
    ofputil_table_features result{};
    result.table_id = schema.id;
    schema.name.copy(result.name, sizeof result.name - 1);
    result.max_entries = schema.capacity;
    result.any_properties = true;
    for (const FieldSpec& spec : schema.match) {
        add_both(result.match, spec.field);
        if (spec.kind == MatchKind::prefix || spec.kind == MatchKind::union_prefix)
            add_both(result.mask, spec.field);
        // Of a pair one is always absent.
        if (!spec.required || has_families(spec.field)) add_both(result.wildcard, spec.field);
        if (spec.field == Field::side) result.metadata_match = ~std::uint64_t{0};
    }
    auto& entry = result.nonmiss;
    for (const SetSpec& spec : schema.set) add_both(entry.apply.set_fields, spec.field);
    if (!schema.set.empty()) {
        entry.instructions |= 1U << OVSINST_OFPIT11_APPLY_ACTIONS;
        entry.apply.ofpacts = std::uint64_t{1} << OFPACT_SET_FIELD;
    }
    if (schema.has_meter) entry.instructions |= 1U << OVSINST_OFPIT13_METER;
    if (!schema.next.empty()) entry.instructions |= 1U << OVSINST_OFPIT11_GOTO_TABLE;
    constexpr std::size_t kBits = 8 * sizeof entry.next[0];
    for (const std::uint8_t next : schema.next) entry.next[next / kBits] |= 1UL << (next % kBits);
    return result;
}

}  // namespace

void append_table_features_reply(Bytes& out, MessageView request,
                                 std::span<const TableSchema* const> tables) {
    ovs::Multipart reply(request);
    for (const TableSchema* schema : tables) {
        const ofputil_table_features features = describe(*schema);
        ofputil_append_table_features(&features, nullptr, reply.get());
    }
    reply.append_to(out);
}

}  // namespace sluice::openflow
