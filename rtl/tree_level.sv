// A level of the tree in which a group is added, where its numbers come one after the other: a number waits for its
// neighbour, and their sum goes to the next level. The group's last number does not wait: its neighbour is zero. One such
// level for each bit by which 128 is more than the PEs of a tile.
module tree_level (
    input  logic        clock,
    input  logic        reset,
    input  logic        valid,
    input  logic        last,
    input  logic [31:0] value,
    output logic        sum_valid,
    output logic        sum_last,
    output logic [31:0] sum
);
  logic waits;
  logic [31:0] waiting;
  logic [31:0] added;

  fp32_add adder (
      .a  (waits ? waiting : 32'd0),
      .b  (value),
      .sum(added)
  );

  always_ff @(posedge clock) begin
    sum_valid <= valid && (waits || last) && !reset;
    sum_last <= last;
    sum <= added;
    if (valid) waiting <= value;
    if (reset) waits <= 1'b0;
    else if (valid) waits <= !waits && !last;
  end
endmodule
