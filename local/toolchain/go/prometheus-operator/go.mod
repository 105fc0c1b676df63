module triton-estate.local/toolchain/prometheus-operator

go 1.27.3

require github.com/prometheus-operator/prometheus-operator v0.85.0
