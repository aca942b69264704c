// Fragments of the matrix units, 16 x 16 numbers each. Kernels name theirs one by one and multiply them with the
// builtin itself: what is in an array or a struct, or passes through a function, a driver keeps in memory instead of
// registers. On an H200 a product ran at 30 TFLOP/s from arrays, 160 from structs of four, 170 through a function
// and 250 like this.
alias Left = subgroup_matrix_left<f16, 16, 16>;
alias Right = subgroup_matrix_right<f16, 16, 16>;
alias Sum = subgroup_matrix_result<f32, 16, 16>;
