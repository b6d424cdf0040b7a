// TF_CONFIG: the cluster as an environment variable, set by Kubeflow's TFJob and users of tf.distribute. Free
// functions, any thread.
//
//   {"cluster": {"chief": ["h0:p"], "worker": ["h1:p", "h2:p"], "ps": ["h3:p"]}, "task": {"type": "worker", "index":
//   1}}
//
// Also read: no chief; "master" for it; the evaluator inside `cluster` or only as the task; sparse addresses
// ("worker": {"1": "h2:p"}, also under "sparseCluster", as TFJob writes it with enableDynamicWorker); the index as
// text. Other keys beside `cluster` and `task` are ignored.
#pragma once

#include <optional>
#include <string>

#include "cluster/spec.h"

namespace lockstep::cluster {

struct TfConfig {
  Spec spec;
  std::optional<Task> task;
};

/// Returns nothing if it names no cluster: empty, "{}", or only a task, as for training in one process. Throws
/// UsageError that shows the key: "TF_CONFIG: cluster.worker[1]: 'h2' has no port; ...".
std::optional<TfConfig> parse_tf_config(const std::string& text);

}  // namespace lockstep::cluster
