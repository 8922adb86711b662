module quadratic

go 1.21
