module triton-estate.local/toolchain/cert-manager

go 1.27.3

require github.com/cert-manager/cert-manager v1.21.2
