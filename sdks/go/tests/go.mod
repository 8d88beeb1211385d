// A module of its own, so that programs that use the client do not download its tests.
module waypost/tests

go 1.24

require waypost v0.1.0

replace waypost => ../
