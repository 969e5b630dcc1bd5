// Takes the sums out of the output buffer, as the SFU does: of each column, when it is whole, LANES values a cycle, so many
// times, after a latency. `taken` falls for a half of the buffer when its column is through, which takes a cycle even where
// there is no value to take.
module drain #(
    parameter LANES = 4
) (
    input  logic                clock,
    input  logic                reset,
    input  logic                single,
    input  logic [        15:0] latency,
    input  logic [        15:0] passes,
    input  logic                whole,     // a column became whole, with so many values
    input  logic [        15:0] whole_values,
    output logic                frees,     // in the last cycle of a column
    output logic                half,
    output logic [   LANES-1:0] valid,
    output logic [16*LANES-1:0] index
);
  logic [1:0] waiting;
  logic [15:0] values[0:1];
  logic fill;
  logic [31:0] cycle;
  logic [15:0] next;
  logic [31:0] left;

  wire active = waiting != 2'd0;
  wire [15:0] all = values[half];
  wire [31:0] total = {16'd0, all} * {16'd0, passes};
  wire [31:0] cycles = (total + LANES - 1) / LANES;
  wire emits = active && cycle >= {16'd0, latency};
  wire [31:0] remaining = cycle == {16'd0, latency} ? total : left;
  assign frees = active && cycle + 32'd1 >= {16'd0, latency} + cycles;

  // The values in the order of the buffer, over and over.
  wire [16*(LANES+1)-1:0] places;
  assign places[15:0] = cycle == {16'd0, latency} ? 16'd0 : next;
  genvar lane;
  generate
    for (lane = 0; lane < LANES; lane = lane + 1) begin : lanes
      wire [15:0] place = places[16*lane+:16];
      assign places[16*(lane+1)+:16] = place + 16'd1 == all ? 16'd0 : place + 16'd1;
      assign valid[lane] = emits && remaining > lane;
      assign index[16*lane+:16] = place;
    end
  endgenerate

  always_ff @(posedge clock) begin
    if (reset) begin
      waiting <= 2'd0;
      half <= 1'b0;
      fill <= 1'b0;
      cycle <= 32'd0;
      next <= 16'd0;
      left <= 32'd0;
    end else begin
      waiting <= waiting + {1'b0, whole} - {1'b0, frees};
      if (whole) begin
        values[fill] <= whole_values;
        fill <= !fill && !single;
      end
      if (active) cycle <= frees ? 32'd0 : cycle + 32'd1;
      if (frees) half <= !half && !single;
      if (emits) begin
        next <= places[16*LANES+:16];
        left <= remaining - LANES;
      end
    end
  end
endmodule
