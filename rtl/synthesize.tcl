# Maps the module MODULE to the gates of the Liberty file LIBERTY and prints its area, or with NETLIST writes the result
# there with the gates themselves, as Liberty describes them. PARAMETERS has names and values of the module's parameters.
yosys -import
read_verilog -sv {*}[lsort [glob *.sv]]
if {[info exists ::env(PARAMETERS)] && $::env(PARAMETERS) ne ""} {
  foreach {name value} $::env(PARAMETERS) { chparam -set $name $value $::env(MODULE) }
}
hierarchy -check -top $::env(MODULE)
synth -flatten -top $::env(MODULE)
dfflibmap -liberty $::env(LIBERTY)
abc -liberty $::env(LIBERTY)
opt_clean -purge
if {![info exists ::env(NETLIST)]} {
  tee -o /dev/stdout stat -liberty $::env(LIBERTY)
} else {
  read_liberty -ignore_miss_func $::env(LIBERTY)
  hierarchy -top $::env(MODULE)
  procs
  write_verilog -noattr $::env(NETLIST)
}
