// x of the second product of a pair: the first's, which is not imported again under other names. Twin: skinny_x_staged.
