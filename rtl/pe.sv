// A PE (SPEQ, IV-C): the products of a cycle, kept in registers, and three units that add in FP32. A tile says what these
// add: with `left` the products and `right` the sums they accumulate, and wired as a tree they add the products of a group
// in the order that src/accelerator/function/tile.h fixes. `added` is what `sums` has a cycle later.
module pe #(
    parameter FULL  = 1,
    parameter DRAFT = 1
) (
    input  logic        clock,
    input  logic        draft,
    input  logic        masked,
    input  logic [15:0] activation,
    input  logic [14:0] weight,
    output logic [95:0] products,
    input  logic [95:0] left,
    input  logic [95:0] right,
    output logic [95:0] added,
    output logic [95:0] sums
);
  logic [95:0] now;
  pe_products #(
      .FULL (FULL),
      .DRAFT(DRAFT)
  ) multiplied (
      .draft(draft),
      .masked(masked),
      .activation(activation),
      .weight(weight),
      .products(now)
  );

  genvar lane;
  generate
    for (lane = 0; lane < 3; lane = lane + 1) begin : lanes
      if (lane == 0 || DRAFT != 0) begin : there
        fp32_add accumulator (
            .a  (left[32*lane+:32]),
            .b  (right[32*lane+:32]),
            .sum(added[32*lane+:32])
        );
      end else begin : left_out
        assign added[32*lane+:32] = 32'd0;
      end
    end
  endgenerate

  always_ff @(posedge clock) begin
    products <= now;
    sums <= added;
  end
endmodule
