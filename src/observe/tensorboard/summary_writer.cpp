#include "observe/tensorboard/summary_writer.h"

#include <chrono>
#include <exception>

#include "base/mutex.h"
#include "base/utf8.h"
#include "observe/tensorboard/event_file.h"
#include "observe/tensorboard/graph_def.h"
#include "observe/tensorboard/histogram.h"
#include "tensorboard.pb.h"

namespace lockstep::observe {
namespace {

using tensorboard::Event;
using tensorboard::SessionLog;
using tensorboard::Summary;
using tensorboard::SummaryMetadata;

constexpr size_t kWriteBytes = 8192;  ///< bytes worth a write
constexpr double kPatience = 2.0;     ///< seconds that a record may wait while others follow

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

void set_plugin(Summary::Value& value, const std::string& plugin, const std::string& content) {
  SummaryMetadata& metadata = *value.mutable_metadata();
  metadata.mutable_plugin_data()->set_plugin_name(plugin);
  metadata.mutable_plugin_data()->set_content(content);
  metadata.set_data_class(SummaryMetadata::TENSOR);
}

tensorboard::HistogramProto as_message(const Histogram& histogram) {
  tensorboard::HistogramProto message;
  message.set_min(histogram.min);
  message.set_max(histogram.max);
  message.set_num(histogram.num);
  message.set_sum(histogram.sum);
  message.set_sum_squares(histogram.sum_squares);
  message.mutable_bucket_limit()->Add(histogram.limits.begin(), histogram.limits.end());
  message.mutable_bucket()->Add(histogram.counts.begin(), histogram.counts.end());
  return message;
}

/// Adds a value for the HParams tab: its content is in the metadata, its tensor is empty.
void add_hparams(Summary& summary, const std::string& tag, const tensorboard::HParamsPluginData& data) {
  Summary::Value& value = *summary.add_value();
  value.set_tag("_hparams_/" + tag);
  value.mutable_tensor()->set_dtype(tensorboard::FLOAT);
  value.mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(0);
  set_plugin(value, "hparams", data.SerializeAsString());
}

tensorboard::SettingValue as_message(const HParam& value) {
  tensorboard::SettingValue message;
  if (const bool* flag = std::get_if<bool>(&value)) message.set_bool_value(*flag);
  if (const double* number = std::get_if<double>(&value)) message.set_number_value(*number);
  if (const auto* text = std::get_if<std::string>(&value)) message.set_string_value(base::as_utf8(*text));
  return message;
}

tensorboard::HParamInfo::Type type_of(const HParam& value) {
  if (std::holds_alternative<bool>(value)) return tensorboard::HParamInfo::BOOL;
  return std::holds_alternative<double>(value) ? tensorboard::HParamInfo::FLOAT64 : tensorboard::HParamInfo::TEXT;
}

tensorboard::HParamsPluginData experiment_of(const HParams& hparams) {
  tensorboard::HParamsPluginData data;
  tensorboard::Experiment& experiment = *data.mutable_experiment();
  experiment.set_time_created_secs(now());
  for (const auto& [name, value] : hparams.values) {
    tensorboard::HParamInfo& info = *experiment.add_hparam_infos();
    info.set_name(base::as_utf8(name));
    info.set_type(type_of(value));
  }
  for (const std::string& tag : hparams.metrics) {
    experiment.add_metric_infos()->mutable_name()->set_tag(base::as_utf8(tag));
  }
  return data;
}

tensorboard::HParamsPluginData start_of(const HParams& hparams) {
  tensorboard::HParamsPluginData data;
  tensorboard::SessionStartInfo& start = *data.mutable_session_start_info();
  start.set_group_name(base::as_utf8(hparams.group));
  start.set_start_time_secs(now());
  for (const auto& [name, value] : hparams.values) (*start.mutable_hparams())[base::as_utf8(name)] = as_message(value);
  return data;
}

}  // namespace

class SummaryWriter::Impl {
 public:
  Impl(const std::string& folder, Warn warn) : file_(folder, std::move(warn)) {
    scalar_.mutable_summary()->add_value();
  }

  /// Runs `add` on the file; an exception (out of memory) ends the writing as a full disk does.
  template <class Add>
  void guarded(Add add) {
    const base::MutexLock lock(mutex_);
    mutex_.assert_held();
    if (!file_.working()) return;
    try {
      add(*this);
    } catch (const std::exception& error) {
      file_.give_up(std::string("no more summaries: ") + error.what());
    }
  }

  /// Makes an event outside the lock and appends it.
  template <class Fill>
  void add(uint64_t step, Fill fill) {
    std::exception_ptr failed;
    Event event;
    try {
      event.set_wall_time(now());
      event.set_step(static_cast<int64_t>(step));
      if (!fill(event)) return;
    } catch (...) {
      failed = std::current_exception();
    }
    guarded([&](Impl& self) {
      self.mutex_.assert_held();
      if (failed) std::rethrow_exception(failed);
      self.append(event);
    });
  }

  void scalar(std::string_view tag, uint64_t step, double value) {
    guarded([&](Impl& self) {
      self.mutex_.assert_held();
      self.scalar_.set_wall_time(now());
      self.scalar_.set_step(static_cast<int64_t>(step));
      Summary::Value& summary = *self.scalar_.mutable_summary()->mutable_value(0);
      set_tag(summary, tag);
      summary.set_simple_value(static_cast<float>(value));
      self.append(self.scalar_);
    });
  }

  void flush() {
    const base::MutexLock lock(mutex_);
    file_.flush();
  }

  static void set_tag(Summary::Value& value, std::string_view tag) {
    if (base::is_utf8(tag)) {
      value.mutable_tag()->assign(tag);
    } else {
      value.set_tag(base::as_utf8(tag));
    }
  }

 private:
  void append(const Event& event) LOCKSTEP_REQUIRES(mutex_) {
    file_.append(event);
    if (file_.waiting() < kWriteBytes && event.wall_time() < flushed_ + kPatience) return;
    flushed_ = event.wall_time();
    file_.flush();
  }

  base::Mutex mutex_;
  EventFile file_ LOCKSTEP_GUARDED_BY(mutex_);
  Event scalar_ LOCKSTEP_GUARDED_BY(mutex_);  ///< reused, so that a scalar allocates nothing
  double flushed_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
};

SummaryWriter::SummaryWriter(const std::string& folder, Warn warn)
    : impl_(std::make_unique<Impl>(folder, std::move(warn))) {
  impl_->add(0, [](Event& event) {
    event.set_file_version("brain.Event:2");
    return true;
  });
  flush();
}

void SummaryWriter::go_on_from(uint64_t step) {
  impl_->add(step + 1, [](Event& event) {
    event.mutable_session_log()->set_status(SessionLog::START);
    return true;
  });
  flush();
}

SummaryWriter::~SummaryWriter() = default;

void SummaryWriter::scalar(std::string_view tag, uint64_t step, double value) { impl_->scalar(tag, step, value); }

void SummaryWriter::histogram(std::string_view tag, uint64_t step, std::span<const float> values) {
  impl_->add(step, [&](Event& event) {
    const Histogram histogram = histogram_of(values);
    Summary::Value& value = *event.mutable_summary()->add_value();
    Impl::set_tag(value, tag);
    *value.mutable_histo() = as_message(histogram);
    return histogram.num > 0;
  });
}

void SummaryWriter::image(std::string_view tag, uint64_t step, std::span<const uint8_t> png, int height, int width,
                          int channels) {
  impl_->add(step, [&](Event& event) {
    Summary::Value& value = *event.mutable_summary()->add_value();
    Impl::set_tag(value, tag);
    Summary::Image& image = *value.mutable_image();
    image.set_height(height);
    image.set_width(width);
    image.set_colorspace(channels);
    image.set_encoded_image_string(png.data(), png.size());
    return true;
  });
}

void SummaryWriter::graph(const Graph& graph, const Devices& devices) {
  impl_->add(0, [&](Event& event) {
    event.set_graph_def(graph_def(graph, devices).SerializeAsString());
    return true;
  });
}

void SummaryWriter::text(std::string_view tag, uint64_t step, std::string_view markdown) {
  impl_->add(step, [&](Event& event) {
    Summary::Value& value = *event.mutable_summary()->add_value();
    Impl::set_tag(value, tag);
    value.mutable_tensor()->set_dtype(tensorboard::STRING);
    value.mutable_tensor()->mutable_tensor_shape();
    value.mutable_tensor()->add_string_val(base::as_utf8(markdown));
    set_plugin(value, "text", "");
    return true;
  });
}

void SummaryWriter::hparams(const HParams& hparams) {
  impl_->add(0, [&](Event& event) {
    add_hparams(*event.mutable_summary(), "experiment", experiment_of(hparams));
    add_hparams(*event.mutable_summary(), "session_start_info", start_of(hparams));
    return true;
  });
}

void SummaryWriter::ended(bool well) {
  impl_->add(0, [&](Event& event) {
    tensorboard::HParamsPluginData data;
    tensorboard::SessionEndInfo& end = *data.mutable_session_end_info();
    end.set_status(well ? tensorboard::SessionEndInfo::SUCCESS : tensorboard::SessionEndInfo::FAILURE);
    end.set_end_time_secs(now());
    add_hparams(*event.mutable_summary(), "session_end_info", data);
    return true;
  });
}

void SummaryWriter::checkpoint(uint64_t step, std::string_view path) {
  impl_->add(step, [&](Event& event) {
    event.mutable_session_log()->set_status(SessionLog::CHECKPOINT);
    event.mutable_session_log()->set_checkpoint_path(base::as_utf8(path));
    return true;
  });
}

void SummaryWriter::flush() { impl_->flush(); }

}  // namespace lockstep::observe
