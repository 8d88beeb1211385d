module shop

go 1.24

require waypost v0.1.0

replace waypost => ../../sdks/go
