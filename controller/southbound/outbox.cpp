// SPDX-License-Identifier: Apache-2.0
#include "controller/southbound/outbox.hpp"

#include <algorithm>

namespace sluice::southbound {

using namespace openflow;

namespace {

constexpr std::size_t kRoom = std::size_t{1} << 20;  // octets waiting in the connection
constexpr std::uint16_t kFlags = kBundleAtomic | kBundleOrdered;

FlowMod put_mod(const Entry& entry) {
    FlowMod mod;
    mod.command = ModCommand::add;
    mod.entry = entry;
    return mod;
}
FlowMod remove_mod(const EntryKey& key) {
    FlowMod mod;
    mod.command = ModCommand::remove_strict;
    mod.entry.key = key;
    return mod;
}
// An entry that a switch will not have, whatever else it holds; as opposed to no room, a
// role, or a bundle that is too large.
bool is_own_fault(const ErrorCode& code) {
    constexpr std::uint16_t kBadAction = 2, kBadInstruction = 3, kBadMatch = 4, kFlowMod = 5;
    if (code.experimenter != 0) return code == error::kBadPriority;
    return code.type == kBadAction || code.type == kBadInstruction || code.type == kBadMatch ||
           (code.type == kFlowMod && code != error::kTableFull && code != error::kFlowModUnknown);
}

MeterMod remove_mod(MeterId id) {
    return {MeterCommand::remove, {id, 0, 0}, false};
}

}  // namespace

void Outbox::push(std::uint64_t revision, Changes changes) {
    Parcel& parcel = parcels_.emplace_back();
    parcel.revision = revision;
    if (changes.empty()) {
        parcel.step = Step::done;
        parcel.finished = true;
        return;
    }
    parcel.bundled = !changes.put.empty() || !changes.remove.empty() || !plain_;
    parcel.bundle = ++last_bundle_;
    parcel.changes = std::move(changes);
}

void Outbox::pump() {
    for (Parcel& parcel : parcels_) {
        while (parcel.step != Step::done) {
            if (connection_.queued() > kRoom) return connection_.flush();
            if (write_step(parcel))
                parcel.step = static_cast<Step>(static_cast<int>(parcel.step) + 1);
        }
    }
    connection_.flush();
}

std::size_t Outbox::size_of(const Parcel& parcel) const {
    const Changes& changes = parcel.changes;
    switch (parcel.step) {
        case Step::plain_meters:
            return plain_ ? changes.put_meters.size() : 0;
        case Step::meters:
            return plain_ ? 0 : changes.put_meters.size();
        case Step::remove:
            return changes.remove.size();
        case Step::put:
            return changes.put.size();
        case Step::remove_meters:
            return plain_ ? 0 : changes.remove_meters.size();
        case Step::plain_remove:
            return plain_ ? changes.remove_meters.size() : 0;
        case Step::open:
        case Step::commit:
            return parcel.bundled ? 1 : 0;
        case Step::barrier:
            return 1;
        case Step::done:
            return 0;
    }
    return 0;
}

// True when the step is over.
bool Outbox::write_step(Parcel& parcel) {
    const std::size_t size = size_of(parcel);
    for (; parcel.index < size; ++parcel.index) {
        if (connection_.queued() > kRoom) return false;
        write_one(parcel);
    }
    parcel.index = 0;
    return true;
}

void Outbox::write_one(Parcel& parcel) {
    Bytes& out = connection_.out();
    const Changes& changes = parcel.changes;
    const std::size_t index = parcel.index;
    switch (parcel.step) {
        case Step::plain_meters:
        case Step::meters: {
            const Meter& meter = changes.put_meters[index];
            const bool is_new = meters_.insert(meter.id).second;
            if (is_new) parcel.new_meters.push_back(meter.id);
            const MeterMod mod{is_new ? MeterCommand::add : MeterCommand::modify, meter, false};
            const Xid xid = use_xid(parcel);
            plain_ ? append_meter_mod(out, xid, mod) : append_bundled(out, xid, parcel.bundle, mod);
            break;
        }
        case Step::open:
            control(parcel, BundleType::open_request);
            break;
        case Step::remove:
            append_bundled(out, use_xid(parcel), parcel.bundle, remove_mod(changes.remove[index]));
            break;
        case Step::put:
            append_bundled(out, use_xid(parcel), parcel.bundle, put_mod(changes.put[index]));
            break;
        case Step::remove_meters:
        case Step::plain_remove: {
            const MeterId id = changes.remove_meters[index];
            meters_.erase(id);
            const Xid xid = use_xid(parcel);
            plain_ ? append_meter_mod(out, xid, remove_mod(id))
                   : append_bundled(out, xid, parcel.bundle, remove_mod(id));
            break;
        }
        case Step::commit:
            control(parcel, BundleType::commit_request);
            break;
        case Step::barrier:
            append_barrier_request(out, use_xid(parcel));
            parcel.written = now_();
            break;
        case Step::done:
            break;
    }
}

void Outbox::control(Parcel& parcel, BundleType type) {
    append_bundle_control(connection_.out(), use_xid(parcel), {parcel.bundle, type, kFlags});
}

Xid Outbox::use_xid(Parcel& parcel) {
    const Xid xid = connection_.next_xid();
    if (parcel.first_xid == 0) parcel.first_xid = xid.value;
    if (parcel.index == 0 || xid.value != parcel.last_xid + 1)
        parcel.runs.push_back({xid.value, parcel.step, parcel.index});
    parcel.last_xid = xid.value;
    return xid;
}

std::optional<Outbox::Outcome> Outbox::pop() {
    if (parcels_.empty() || !parcels_.front().finished) return std::nullopt;
    Parcel& parcel = parcels_.front();
    if (parcel.refused && !plain_) {  // its meters are as they were
        for (const MeterId id : parcel.new_meters) meters_.erase(id);
        for (const MeterId id : parcel.changes.remove_meters) meters_.insert(id);
    }
    if (parcel.wrong_otherwise) parcel.culprits.clear();
    Outcome outcome{parcel.revision, std::move(parcel.changes), std::move(parcel.refused),
                    std::move(parcel.culprits)};
    parcels_.pop_front();
    return outcome;
}

void Outbox::on_barrier(Xid xid) {
    for (Parcel& parcel : parcels_) {
        if (parcel.finished || parcel.step != Step::done || parcel.last_xid != xid.value) continue;
        parcel.finished = true;
        if (parcel.bundled && !parcel.committed && !parcel.refused)
            parcel.refused = "the switch answered the barrier but not the commit before it";
        return;
    }
}

void Outbox::on_bundle(const BundleControl& reply, Xid xid) {
    if (reply.type != BundleType::commit_reply) return;
    for (Parcel& parcel : parcels_)
        if (parcel.bundle == reply.bundle && xid.value >= parcel.first_xid &&
            xid.value <= parcel.last_xid)
            parcel.committed = true;
}

bool Outbox::on_error(const RemoteError& error) {
    for (Parcel& parcel : parcels_) {
        const std::uint32_t xid = error.xid.value;
        if (parcel.first_xid == 0 || xid < parcel.first_xid || xid > parcel.last_xid) continue;
        const Place place = locate(parcel, xid);
        if (place.step == Step::put && is_own_fault(error.code))
            parcel.culprits.try_emplace(place.index, error.text);
        else if (place.step != Step::commit || !parcel.refused)
            parcel.wrong_otherwise = true;
        // The first one is the cause; that the bundle then fails is its consequence.
        if (!parcel.refused) parcel.refused = describe(parcel, place) + ": " + error.text;
        return true;
    }
    return false;
}

Outbox::Place Outbox::locate(const Parcel& parcel, std::uint32_t xid) {
    Place place;
    for (const Run& run : parcel.runs) {
        if (run.first_xid > xid) break;
        place = {run.step, run.first_index + (xid - run.first_xid)};
    }
    if (place.step == Step::put && place.index >= parcel.changes.put.size()) return {};
    return place;
}

std::string Outbox::describe(const Parcel& parcel, const Place& place) {
    const auto [step, index] = place;
    const Changes& changes = parcel.changes;
    if (step == Step::put) {
        const Entry& entry = changes.put[index];
        return "refused an entry of table " + std::to_string(entry.key.table) + " with cookie " +
               std::to_string(entry.cookie.value);
    }
    if (step == Step::remove && index < changes.remove.size())
        return "refused to remove an entry of table " + std::to_string(changes.remove[index].table);
    if ((step == Step::meters || step == Step::plain_meters) && index < changes.put_meters.size())
        return "refused meter " + std::to_string(changes.put_meters[index].id.value);
    return step == Step::open ? "refused a bundle" : "did not apply a bundle";
}

std::optional<Outbox::Clock::time_point> Outbox::waiting_since() const {
    for (const Parcel& parcel : parcels_)
        if (parcel.step == Step::done && !parcel.finished) return parcel.written;
    return std::nullopt;
}

void Outbox::clear() {
    for (Parcel& parcel : parcels_)
        if (parcel.bundled && parcel.step > Step::open && parcel.step <= Step::commit)
            control(parcel, BundleType::discard_request);
    parcels_.clear();
}

}  // namespace sluice::southbound
