module waypost

go 1.24
