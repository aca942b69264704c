// A plan's commands as text for people and as a digest for tests. Two plans with equal digests make a GPU do the same.
// Native only (SHA-256).
//
// The digest of a dispatch covers the pipeline (WGSL without comments and blank space, constants, layout, trust), the
// bytes of its parameters, the grid, and every binding by buffer name, offset and bytes. The digest of a copy covers
// both ranges. The plan's most rows count too. A scratch tensor is named by the order of first use in its plan.
// Therefore labels, the order in which scratch was made, and which tensors share memory do not matter. Labels and
// op_labels of commands are not digested.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/plan.h"
#include "gpu/recording_device.h"

namespace doppler::gpu {

struct CommandText {
  std::string label;                   // of the pipeline: "matvec.q4_k.subgroup.r4"; "copy"
  std::string op_label;                // "blk.3.attn_q"
  std::string grid;                    // "128 x 1 x rows/8"; of a copy: "512 bytes a row"
  std::string wgsl;                    // digest of the WGSL without its leading constants; empty for a copy
  std::vector<std::string> constants;  // of the WGSL's beginning and overrides: "WORKGROUP=64u"
  std::string params;                  // bytes of the uniform binding, hexadecimal, a group a word of 4
  std::vector<std::string> bindings;   // by number: "r token_embd+0:4096", "rw scratch3+0:256"
  std::string pipeline;                // digest of WGSL, constants, layout, trust and params
};

// "matvec.q4_k.subgroup.r4 blk.3.attn_q: 128 x 1 x 1; r ...; pipeline 0123456789ab". Without the constants.
std::string one_line(const CommandText& command);

class PlanText {
 public:
  // `device` made the plans that are asked about, and must outlive this.
  explicit PlanText(const RecordingDevice& device) : device_(device) {}

  std::vector<CommandText> commands(const Plan& plan);
  // 12 hexadecimal digits.
  std::string digest(const Plan& plan);
  // As composed. Empty for a copy.
  std::string_view wgsl(const Plan& plan, size_t command) const;

 private:
  struct PipelineText {
    std::string digest, wgsl;  // digest: of all but the params
    std::vector<std::string> constants;
  };
  const PipelineText& pipeline(PipelineId id);
  CommandText dispatch(const Plan& plan, size_t at, std::map<uint32_t, size_t>& scratch);
  CommandText copy(const Plan& plan, size_t at, std::map<uint32_t, size_t>& scratch);

  const RecordingDevice& device_;
  std::map<PipelineId, PipelineText> pipelines_;
};

}  // namespace doppler::gpu
