// The expert of a workgroup of moe/expert_place's grid. Binding of the entry: routes.
fn expert_of(group: vec3<u32>) -> u32 { return routes[group.z * 2u * N_USED + group.y]; }
