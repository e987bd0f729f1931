// The Taut side of bench/compare: does what it is told, line by line, and answers each line with one. Both
// are JSON objects. bench/pytorch/worker.py answers the same requests:
//
//     {"do": "open", "workload": "mnist-mlp", "exchange": DIR, "threads": 2, "rung": "f32", "device": "cpu"}
//     {"do": "steps", "count": 100}        -> {"seconds": 0.05, "losses": [...]}
//     {"do": "infer", "batch": 1, "count": 100}        -> {"seconds": 0.001, "logits": [...]}
//     {"do": "images", "directory": DIR, "train": 50000, "test": 10000}
//     {"do": "train"} and {"do": "evaluate"}        -> {"seconds": 1.2, "samples": ..., "loss": ..., ...}
//     {"do": "memory"}        -> {"peak": ...}: the most memory in bytes, of the device if that is a GPU
//     {"do": "about", "device": "cpu"}        -> versions and flags
//
// The device, "cpu" or "cuda", may be left out: it is the processor. device.hpp lists the rungs of both.
//
// and this one also
//
//     {"do": "exchange", "workload": "mnist-mlp", "directory": DIR, "count": 20, "batch": 64}, which writes
//     what both start from
//     {"do": "profile", "count": 5, "trace": FILE}, where a 'profiled' rung is open
//         -> {"seconds": ..., "floor": ..., "report": TABLE, ...}: of a step

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <taut/cpu/cpu.hpp>
#include <taut/interpret/profile_report.hpp>
#include <taut/interpret/trace.hpp>
#include <taut/io/chrome_trace.hpp>

#include <functional>
#include <iostream>
#include <optional>
#include <string>

#include "device.hpp"
#include "interleaved.hpp"
#include "peaks.hpp"

using namespace taut;

namespace {

using Request = rapidjson::Value;
/// Losses may be NaN, which the JSON of Python has, too.
using Reply = rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>,
                                rapidjson::CrtAllocator, rapidjson::kWriteNanAndInfFlag>;

std::string text(const Request& request, const char* key) {
  if (!request.HasMember(key) || !request[key].IsString())
    throw Error(std::string("expected a text '") + key + "'");
  return request[key].GetString();
}

std::int64_t number(const Request& request, const char* key) {
  if (!request.HasMember(key) || !request[key].IsInt64())
    throw Error(std::string("expected a whole number '") + key + "'");
  return request[key].GetInt64();
}

void write(Reply& reply, const char* key, double value) {
  reply.Key(key);
  reply.Double(value);
}

void write(Reply& reply, const char* key, const std::string& value) {
  reply.Key(key);
  reply.String(value.c_str());
}

void write(Reply& reply, const char* key, const std::vector<double>& values) {
  reply.Key(key);
  reply.StartArray();
  for (const double value : values) reply.Double(value);
  reply.EndArray();
}

class Worker {
 public:
  void answer(const Request& request, Reply& reply) {
    const std::string what = text(request, "do");
    if (what == "open") return open(request);
    if (what == "exchange") return write_exchange(request);
    if (what == "steps") return steps(number(request, "count"), reply);
    if (what == "infer") return infer(number(request, "batch"), number(request, "count"), reply);
    if (what == "images") return load_images(request);
    if (what == "train") return pass(reply, [&] { return session().train(train_.value()); });
    if (what == "evaluate") return pass(reply, [&] { return session().evaluate(test_.value()); });
    if (what == "memory") return write(reply, "peak", device_->peak_bytes());
    if (what == "about") return about(request, reply);
    if (what == "profile") return profile(request, reply);
    throw Error("there is no request '" + what + "'");
  }

 private:
  bench::Session& session() {
    if (!session_) throw Error("expected 'open' first");
    return *session_;
  }

  void open(const Request& request) {
    const std::string exchange = text(request, "exchange"), rung = text(request, "rung");
    set_threads(static_cast<int>(number(request, "threads")));
    workload_ = &bench::find_workload(text(request, "workload"));
    device_ = &find_device(request);
    session_ =
        device_->open(rung, {*workload_, bench::weights_path(exchange), bench::read_batches(exchange)});
  }

  static void write_exchange(const Request& request) {
    const auto& workload = bench::find_workload(text(request, "workload"));
    const auto batch = request.HasMember("batch") ? number(request, "batch") : workload.batch;
    bench::write_exchange(workload, text(request, "directory"), batch,
                          static_cast<int>(number(request, "count")));
  }

  static const bench::Device& find_device(const Request& request) {
    const std::string name = request.HasMember("device") ? text(request, "device") : "cpu";
    if (name == "cpu") return bench::cpu_device();
#if TAUT_HAS_CUDA
    if (name == "cuda") return bench::cuda_device();
#endif
    throw Error("there is no device '" + name + "', or Taut was built without it");
  }

  /// The seconds that it takes until all of the work is done.
  double time(const std::function<void()>& work) const {
    return bench::seconds_per_call([&] { work(), device_->finish(); }, 1);
  }

  void steps(std::int64_t count, Reply& reply) {
    std::vector<double> losses;
    write(reply, "seconds", time([&] {
            for (std::int64_t i = 0; i < count; ++i) losses.push_back(session().train_step());
          }));
    write(reply, "losses", losses);
  }

  void infer(std::int64_t batch, std::int64_t count, Reply& reply) {
    write(reply, "seconds", time([&] {
            for (std::int64_t i = 0; i < count; ++i) session().infer(batch);
          }));
    write(reply, "logits", session().logits());
  }

  void load_images(const Request& request) {
    session();
    const std::string directory = text(request, "directory");
    train_ = bench::Images::load(*workload_, directory, data::Split::train, number(request, "train"));
    test_ = bench::Images::load(*workload_, directory, data::Split::test, number(request, "test"));
  }

  void pass(Reply& reply, const std::function<bench::Pass()>& work) {
    if (!train_) throw Error("expected 'images' first");
    bench::Pass result;
    write(reply, "seconds", time([&] { result = work(); }));
    write(reply, "samples", static_cast<double>(result.samples));
    write(reply, "loss", result.loss);
    write(reply, "accuracy", result.accuracy);
  }

  void profile(const Request& request, Reply& reply) {
    const auto count = number(request, "count");
    session().train_step();  // makes what the others find there
    reset_profile();
    std::optional<TraceRecording> trace;
    if (request.HasMember("trace")) trace.emplace();
    const double whole = bench::seconds_per_call(
        [&] {
          for (std::int64_t i = 0; i < count; ++i) {
            const TraceSpan span("step");
            session().train_step();
          }
        },
        1);
    if (trace) {
      trace->stop();
      io::write_chrome_trace(*trace, text(request, "trace"));
    }
    const auto entries = profile_entries_by_shape();
    ProfileEntry total;
    for (const auto& entry : entries) total += entry;
    const auto steps = static_cast<double>(count);
    // What a step moves is at least what it works on: small networks stay in caches.
    const Peaks limits{
        bench::measure_fma_peak(threads()),
        bench::bandwidth(threads(), bench::Stream::triad, static_cast<double>(total.bytes) / steps)};
    double floor = 0;
    for (const auto& entry : entries) floor += floor_seconds(entry, limits);
    write(reply, "flops", limits.flops_per_second);
    write(reply, "bytes", limits.bytes_per_second);
    write(reply, "seconds", whole / steps);
    write(reply, "inside", total.seconds / steps);
    write(reply, "floor", floor / steps);
    write(reply, "step_flops", static_cast<double>(total.flops) / steps);
    write(reply, "step_bytes", static_cast<double>(total.bytes) / steps);
    write(reply, "steps", steps);
    write(reply, "report", profile_report(limits));
  }

  static void about(const Request& request, Reply& reply) {
    write(reply, "name", "Taut");
    write(reply, "version", TAUT_BENCH_VERSION);
    write(reply, "compiler", TAUT_BENCH_COMPILER);
    write(reply, "flags", TAUT_BENCH_FLAGS);
    for (const auto& [key, value] : find_device(request).about()) write(reply, key.c_str(), value);
  }

  const bench::Workload* workload_ = nullptr;
  const bench::Device* device_ = &bench::cpu_device();
  std::unique_ptr<bench::Session> session_;
  std::optional<bench::Images> train_, test_;
};

/// The answer to one line: a mistake in it, or a failure of the work, is an answer too.
std::string answer(Worker& worker, const std::string& line) {
  rapidjson::StringBuffer buffer;
  Reply reply(buffer);
  rapidjson::Document request;
  try {
    reply.StartObject();
    if (request.Parse(line.c_str()).HasParseError() || !request.IsObject())
      throw Error("expected a JSON object on one line");
    worker.answer(request, reply);
  } catch (const std::exception& error) {
    buffer.Clear();
    reply.Reset(buffer);
    reply.StartObject();
    reply.Key("error");
    reply.String(error.what());
  }
  reply.EndObject();
  return buffer.GetString();
}

}  // namespace

int main() {
  Worker worker;
  for (std::string line; std::getline(std::cin, line);) std::cout << answer(worker, line) << std::endl;
}
