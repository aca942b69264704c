// Chooses the experts of each row by its router's logits, and weights them (Shazeer et al. 2017). Equal choices go to
// the lower id, so that the result depends only on the logits.
//   score  = softmax or sigmoid of the logits, or the logits themselves (kSoftmaxOfChosen)
//   choice = score, plus a bias that counts only for the choice, if there is one (Wang et al. 2024)
//   groups: experts come only from the best groups_used of n_groups runs of experts (DeepSeek-AI 2024)
//   weight = score of the chosen (kSoftmaxOfChosen: softmax of their logits); if norm_weights, divided by their sum
//   plus
//            norm_epsilon; times weight_scale, and times the expert's own scale if there is one
// Error bound: relative L2 of the weights below 1e-5.
#pragma once

#include "base/router_score.h"
#include "kernels/moe/routes.h"

namespace doppler::kernels {

struct Route {
  TensorView logits;       // f32 [rows, n_experts]
  TensorView bias = {};    // optional f32 [n_experts]
  TensorView scales = {};  // optional f32 [n_experts]
  Routes y;
  RouterScore score = RouterScore::kSoftmax;
  uint32_t n_groups = 1, groups_used = 1;
  GroupScore group_score = GroupScore::kMax;
  bool norm_weights = false;
  float norm_epsilon = 0, weight_scale = 1;
};
// Errors: more experts than kMaxExperts or more used than kMaxUsedExperts; groups that do not divide the experts or
// hold too few.
Result<void> record(Context& ctx, const Route& op);

}  // namespace doppler::kernels
