package vector

// assembly is what AVX2 has.
var assembly = table{}
