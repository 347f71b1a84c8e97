// SPDX-License-Identifier: Apache-2.0
#include "controller/api/service.hpp"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/json/serialize.hpp>
#include <list>
#include <set>
#include <unordered_map>
#include <vector>

#include "controller/model/fields.hpp"

namespace sluice::api {
namespace {

using model::Kind;
using model::Resource;
using model::ResourcePtr;

std::int64_t milliseconds_now() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

std::string shown(const boost::json::value& side) {
    return side.is_null() ? std::string() : boost::json::serialize(side);
}

std::string action_of(const model::Change& change) {
    if (!change.before) return "create";
    if (!change.after) return "removed";
    return change.after->deleting && !change.before->deleting ? "delete" : "update";
}

}  // namespace

std::string_view to_string(Status::State state) {
    switch (state) {
        case Status::State::pending:
            return "pending";
        case Status::State::active:
            return "active";
        case Status::State::degraded:
            return "degraded";
        case Status::State::error:
            return "error";
        case Status::State::deleting:
            return "deleting";
    }
    return "pending";
}

struct Service::Impl : std::enable_shared_from_this<Service::Impl> {
    struct Progress {  // of one gateway
        GatewayReport report;
        std::uint64_t confirmed = 0;
        std::string refusal;  // of what comes after `confirmed`; empty: none
        std::map<Cookie, std::string> withheld;
    };
    struct Waiter {
        Kind kind;
        model::Uuid id;
        std::unique_ptr<boost::asio::steady_timer> timer;
        std::function<void()> done;
    };

    Impl(boost::asio::io_context& io, store::Store& storage) : context(io), store(storage) {}

    boost::asio::io_context& context;
    store::Store& store;
    GatewayLink* link = nullptr;
    model::State state;
    std::uint64_t next_number = model::kNumbersPerObject;
    std::uint64_t revision = 1;
    std::unique_ptr<compiler::Compiler> compiler;
    std::map<std::string, Progress> gateways;
    model::Surroundings surroundings;
    // By resource: since when it is what it is, where that is later than the start; and
    // the last version that was active.
    std::unordered_map<model::Uuid, std::uint64_t> since;
    std::unordered_map<model::Uuid, std::uint64_t> observed;
    std::unordered_map<model::Uuid, std::uint64_t> placed;  // VPCs on their gateway
    // Gateways that had a resource before its last change, and since when not: it has left
    // them once they have confirmed.
    struct Former {
        std::uint64_t revision = 0;
        std::vector<std::string> gateways;
    };
    std::unordered_map<model::Uuid, Former> former;
    std::map<std::uint64_t, ResourcePtr> leaving;  // being deleted, by number
    // Of those: which to look at next, and what each of the others waits for: a gateway's
    // confirmation of a revision, or that a user of it is gone. So a change costs nothing for
    // what waits for something else.
    std::set<std::uint64_t> to_judge;
    std::map<std::string, std::multimap<std::uint64_t, std::uint64_t>> awaiting;
    std::unordered_multimap<model::Uuid, std::uint64_t> held_by;
    std::list<Waiter> waiters;
    bool settling = false;

    Result<void> load() {
        auto loaded = store.load();
        if (!loaded) return loaded.error();
        next_number = loaded->next_number;
        model::Diff all;
        for (auto& resource : loaded->resources) {
            if (resource->deleting) {
                leaving.emplace(resource->number, resource);
                to_judge.insert(resource->number);
            }
            if (resource->kind() == Kind::gateway) {
                auto& progress = gateways[resource->name];
                progress.report.name = resource->name;
                progress.report.state = "disconnected";
                progress.report.reason = "it has not connected since the controller started";
            }
            all.push_back({nullptr, std::move(resource)});
        }
        state.apply(all);
        compiler = std::make_unique<compiler::Compiler>(state, revision);
        return {};
    }

    Result<void> commit(const model::Plan& plan, const Actor& actor) {
        if (plan.diff.empty()) return {};
        std::vector<store::AuditRecord> records;
        for (const auto& change : plan.diff) {
            const Resource& resource = change.either();
            const auto [before, after] = model::write_change(change);
            records.push_back({.number = 0,
                               .time = milliseconds_now(),
                               .project = resource.project,
                               .actor = actor.name,
                               .request_id = actor.request_id,
                               .action = action_of(change),
                               .kind = std::string(model::info(resource.kind()).path),
                               .object_id = model::to_string(resource.id),
                               .object_name = resource.name,
                               .before = shown(before),
                               .after = shown(after)});
        }
        if (auto stored = store.commit(plan.diff, records, next_number); !stored) return stored;

        for (const auto& change : plan.diff)
            if (change.before && change.after &&
                status(*change.before).observed_version == change.before->version)
                observed[change.before->id] = change.before->version;
        std::vector<std::vector<std::string>> had;
        for (const auto& change : plan.diff)
            had.push_back(change.before ? needed_by(*change.before) : std::vector<std::string>());
        state.apply(plan.diff);
        ++revision;
        for (std::size_t i = 0; i < plan.diff.size(); ++i)
            former[plan.diff[i].either().id] = {revision, std::move(had[i])};
        for (const auto& change : plan.diff) track(change);
        const auto changes = compiler->update(plan.diff, revision);
        if (link)
            for (const auto& [gateway, changed] : changes)
                link->publish(gateway, revision, changed);
        settle_soon();
        return {};
    }

    void track(const model::Change& change) {
        const Resource& resource = change.either();
        const auto [first, last] = held_by.equal_range(resource.id);
        for (auto held = first; held != last; ++held) to_judge.insert(held->second);
        held_by.erase(first, last);
        if (!change.after) {
            since.erase(resource.id);
            former.erase(resource.id);
            observed.erase(resource.id);
            placed.erase(resource.id);
            leaving.erase(resource.number);
            return;
        }
        since[resource.id] = revision;
        if (resource.deleting) {
            leaving[resource.number] = change.after;
            to_judge.insert(resource.number);
        }
        if (resource.kind() == Kind::vpc &&
            (!change.before || gateway_of(*change.before) != gateway_of(*change.after)))
            placed[resource.id] = revision;
    }

    // --- What has become of it ---------------------------------------------------------------

    [[nodiscard]] std::vector<std::string> needed_by(const Resource& resource) const {
        std::vector<std::string> names;
        const auto add_name = [&](const std::string& name) {
            if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
                names.push_back(name);
        };
        const auto add = [&](const Resource& vpc) { add_name(gateway_of(vpc)); };
        if (const auto left = former.find(resource.id); left != former.end())
            for (const auto& name : left->second.gateways)
                if (const auto found = gateways.find(name);
                    found != gateways.end() && found->second.confirmed < left->second.revision)
                    add_name(name);
        if (resource.kind() == Kind::host) {
            for (const auto& [name, progress] : gateways) add_name(name);
        } else if (resource.kind() == Kind::vpc) {
            add(resource);
        } else if (resource.kind() == Kind::bandwidth) {
            state.each_referrer(resource.id, Kind::elastic_ip, [&](const ResourcePtr& elastic) {
                if (const auto vpc = state.vpc_of(*elastic)) add(*vpc);
                return true;
            });
        } else if (resource.kind() == Kind::prefix_list) {
            state.each_referrer(resource.id, Kind::security_group, [&](const ResourcePtr& group) {
                if (const auto vpc = state.vpc_of(*group)) add(*vpc);
                return true;
            });
        } else if (const auto vpc = state.vpc_of(resource)) {
            add(*vpc);
        }
        return names;
    }

    [[nodiscard]] std::uint64_t revision_of(const Resource& resource) const {
        const auto of = [](const auto& map, const model::Uuid& id) {
            const auto found = map.find(id);
            return found == map.end() ? std::uint64_t{1} : found->second;
        };
        std::uint64_t result = of(since, resource.id);
        const auto vpc = resource.kind() == Kind::vpc ? state.find(Kind::vpc, resource.id)
                                                      : state.vpc_of(resource);
        if (vpc) result = std::max(result, of(placed, vpc->id));
        return result;
    }

    // What a gateway says of an object that it refuses by itself, or of a part of one.
    [[nodiscard]] const std::string* refused_by(const Progress& progress,
                                                const Resource& resource) const {
        for (const auto& [cookie, sentence] : progress.withheld)
            if (const auto of = state.by_number(cookie.value); of && of->id == resource.id)
                return &sentence;
        return nullptr;
    }

    // A gateway may come, or come back, with less than a subnet was given.
    void judge_mtu(const Resource& subnet, const Resource& vpc, Status& status) const {
        const auto most = surroundings.largest_mtu(gateway_of(vpc));
        if (!most || subnet.as<model::Subnet>().mtu.value <= *most) return;
        status.state = Status::State::degraded;
        status.reason = "gateway " + gateway_of(vpc) + ": its underlay carries " +
                        std::to_string(*most) + " octets of a tenant's packet, less than the mtu";
    }

    [[nodiscard]] Status status(const Resource& resource) const {
        using State = Status::State;
        Status status;
        const auto wanted = revision_of(resource);
        bool all_confirmed = true;
        for (const auto& name : needed_by(resource)) {
            const auto found = gateways.find(name);
            Status::OfGateway one{name, State::pending, {}};
            const auto* refused =
                found == gateways.end() ? nullptr : refused_by(found->second, resource);
            if (refused) {
                one.state = State::error;
                one.reason = *refused;
            } else if (found != gateways.end() && found->second.confirmed >= wanted) {
                one.state = State::active;
            } else if (found != gateways.end() && !found->second.refusal.empty()) {
                one.state = State::error;
                one.reason = found->second.refusal;
            } else {
                one.reason = found == gateways.end() || found->second.report.reason.empty()
                                 ? "it has not confirmed yet"
                                 : found->second.report.reason;
            }
            if (one.state != State::active) {
                all_confirmed = false;
                if (status.state != State::error) {
                    status.state = one.state;
                    status.reason = "gateway " + name + ": " + one.reason;
                }
            }
            status.gateways.push_back(std::move(one));
        }
        // What is programmed nowhere is active as it is; but without gateway or place
        // nothing else is.
        const bool is_programmed =
            resource.kind() != Kind::external_pool && resource.kind() != Kind::gateway;
        const auto vpc = resource.kind() == Kind::vpc ? state.find(Kind::vpc, resource.id)
                                                      : state.vpc_of(resource);
        if (all_confirmed && is_programmed && gateways.empty()) {
            status.reason = "no gateway has connected yet";
        } else if (all_confirmed && vpc && gateway_of(*vpc).empty()) {
            status.reason = "no gateway takes new VPCs";
        } else if (all_confirmed) {
            status.state = State::active;
            if (resource.kind() == Kind::subnet) judge_mtu(resource, *vpc, status);
        }
        const auto seen = observed.find(resource.id);
        const bool is_in_force = status.state == State::active || status.state == State::degraded;
        status.observed_version = is_in_force              ? resource.version
                                  : seen == observed.end() ? 0
                                                           : seen->second;
        if (resource.deleting) status.state = State::deleting;
        return status;
    }

    // True once every gateway that had it has confirmed that it is gone, and nothing uses it.
    // Else it is looked at again when the first thing in its way has changed.
    bool is_gone(const Resource& resource) {
        const auto wanted = revision_of(resource);
        for (const auto& name : needed_by(resource)) {
            const auto found = gateways.find(name);
            if (found != gateways.end() && found->second.confirmed >= wanted) continue;
            awaiting[name].emplace(wanted, resource.number);
            return false;
        }
        for (std::size_t kind = 0; kind < model::kKinds; ++kind) {
            ResourcePtr in_use_by;
            state.each_referrer(resource.id, static_cast<Kind>(kind), [&](const ResourcePtr& user) {
                if (user->id != resource.id) in_use_by = user;
                return !in_use_by;
            });
            if (!in_use_by) continue;
            held_by.emplace(in_use_by->id, resource.number);
            return false;
        }
        return true;
    }

    void confirmed(const std::string& gateway, std::uint64_t up_to) {
        auto& progress = gateways[gateway];
        progress.confirmed = std::max(progress.confirmed, up_to);
        progress.refusal.clear();
        auto& waiting = awaiting[gateway];
        const auto end = waiting.upper_bound(progress.confirmed);
        for (auto one = waiting.begin(); one != end; ++one) to_judge.insert(one->second);
        waiting.erase(waiting.begin(), end);
        settle_soon();
    }

    // A southbound may report from inside of publish(), so what follows from a report waits
    // until the present change is complete.
    void settle_soon() {
        if (std::exchange(settling, true)) return;
        boost::asio::post(context, [weak = weak_from_this()] {
            if (const auto self = weak.lock()) {
                self->settling = false;
                self->settle();
            }
        });
    }

    // As one change each time, with what it used in the next: what a large VPC leaves behind
    // takes a transaction a layer, and others their turn between.
    void remove_what_is_gone() {
        constexpr std::size_t kAtATime = 200;
        model::Plan plan;
        std::vector<std::uint64_t> looked_at;
        while (!to_judge.empty() && plan.diff.size() < kAtATime) {
            const auto number = *to_judge.begin();
            to_judge.erase(to_judge.begin());
            const auto found = leaving.find(number);
            if (found == leaving.end() || !is_gone(*found->second)) continue;
            looked_at.push_back(number);
            plan.diff.push_back({found->second, nullptr});
        }
        if (plan.diff.empty()) return;
        // The store may be in trouble: next time.
        if (!commit(plan, {"controller", {}}))
            to_judge.insert(looked_at.begin(), looked_at.end());
        else if (!to_judge.empty())
            settle_soon();
    }

    void settle() {
        remove_what_is_gone();
        for (auto waiter = waiters.begin(); waiter != waiters.end();) {
            const auto resource = state.find(waiter->kind, waiter->id);
            const auto now = resource ? status(*resource).state : Status::State::active;
            if (now == Status::State::active || now == Status::State::degraded ||
                now == Status::State::error) {
                auto done = std::move(waiter->done);
                waiter = waiters.erase(waiter);
                done();
            } else {
                ++waiter;
            }
        }
    }

    void wait(Kind kind, const model::Uuid& id, std::chrono::milliseconds time,
              std::function<void()> done) {
        auto timer = std::make_unique<boost::asio::steady_timer>(context, time);
        auto* key = timer.get();
        timer->async_wait([weak = weak_from_this(), key](boost::system::error_code error) {
            const auto self = weak.lock();
            if (error || !self) return;
            const auto found =
                std::find_if(self->waiters.begin(), self->waiters.end(),
                             [&](const Waiter& waiter) { return waiter.timer.get() == key; });
            if (found == self->waiters.end()) return;
            auto finished = std::move(found->done);
            self->waiters.erase(found);
            finished();
        });
        waiters.push_back({kind, id, std::move(timer), std::move(done)});
        settle_soon();
    }

    model::Planner planner() {
        return {state,
                {.number =
                     [this] {
                         return std::exchange(next_number, next_number + model::kNumbersPerObject);
                     },
                 .uuid = model::random_uuid,
                 .now = milliseconds_now()},
                &surroundings};
    }
};

std::string Service::gateway_of(const Resource& vpc) {
    return vpc.as<model::Vpc>().gateway;
}

Service::Service(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Service::~Service() = default;

Result<std::unique_ptr<Service>> Service::start(boost::asio::io_context& context,
                                                store::Store& store) {
    auto impl = std::make_shared<Impl>(context, store);
    if (auto loaded = impl->load(); !loaded) return loaded.error();
    impl->settle_soon();
    return std::unique_ptr<Service>(new Service(std::move(impl)));
}

void Service::set_link(GatewayLink* link) {
    impl_->link = link;
}
const model::State& Service::state() const {
    return impl_->state;
}
const model::Surroundings& Service::surroundings() const {
    return impl_->surroundings;
}
store::Store& Service::store() {
    return impl_->store;
}
model::Planner Service::planner() {
    return impl_->planner();
}
Result<void> Service::commit(const model::Plan& plan, const Actor& actor) {
    auto done = impl_->commit(plan, actor);
    // A gateway that is up again takes the VPCs that none would.
    const auto is_gateway = [](const model::Change& change) {
        return change.either().kind() == Kind::gateway;
    };
    if (done && std::any_of(plan.diff.begin(), plan.diff.end(), is_gateway))
        (void)impl_->commit(impl_->planner().place_vpcs(), {"controller", {}});
    return done;
}
Status Service::status(const Resource& resource) const {
    return impl_->status(resource);
}
void Service::when_settled(Kind kind, const model::Uuid& id, std::chrono::milliseconds time,
                           std::function<void()> done) {
    impl_->wait(kind, id, time, std::move(done));
}
void Service::query(const std::string& gateway, const std::string& kind, std::string request,
                    std::function<void(Result<std::string>)> done) {
    if (impl_->link)
        impl_->link->query(gateway, kind, std::move(request), std::move(done));
    else
        done(Error{Error::Code::unavailable, "gateway " + gateway + " is not connected", {}});
}

void Service::on_gateway(const GatewayReport& report) {
    if (report.name.empty()) return;  // nothing could be placed on it
    const bool is_new = !impl_->gateways.contains(report.name);
    impl_->gateways[report.name].report = report;
    if (report.facts != model::GatewayFacts{})
        impl_->surroundings.gateways[report.name] = report.facts;
    if (is_new) {
        const Actor actor{"controller", {}};
        if (!commit(planner().add_gateway(report.name), actor)) {
            impl_->gateways.erase(report.name);
            return;
        }
    }
    // Its error, should the store refuse, is tried again with the next report.
    if (report.state != "disconnected") (void)commit(planner().place_vpcs(), {"controller", {}});
    impl_->settle_soon();
}

void Service::on_confirmed(const std::string& gateway, std::uint64_t revision) {
    impl_->confirmed(gateway, revision);
}

void Service::on_error(const std::string& gateway, std::uint64_t, const std::string& sentence) {
    impl_->gateways[gateway].refusal = sentence;
    impl_->settle_soon();
}

void Service::on_withheld(const std::string& gateway, std::map<Cookie, std::string> sentences) {
    impl_->gateways[gateway].withheld = std::move(sentences);
    impl_->settle_soon();
}

GatewayReport Service::report(const std::string& gateway) const {
    if (impl_->link)
        if (auto present = impl_->link->report(gateway)) return *present;
    const auto found = impl_->gateways.find(gateway);
    return found == impl_->gateways.end() ? GatewayReport{} : found->second.report;
}
const compiler::Compiler& Service::compiler() const {
    return *impl_->compiler;
}
std::uint64_t Service::revision() const {
    return impl_->revision;
}

}  // namespace sluice::api
