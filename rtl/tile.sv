// A tile (SPEQ, IV-C): PES PEs, a power of two up to 128, that a group of 128 inputs lies across. The units that add in
// PEs 1 to PES - 1 are a balanced tree over the products, neighbours first; what a tile with fewer than 128 PEs lacks of
// that tree are its upper levels, one tree_level each. A group's sum is multiplied with the group's scale in quantize mode,
// and PE 0 adds it to what is there of its output. Ten cycles after a step `totals` holds the result, if the step was the
// last of its group; `running` must hold then what is there.
module tile #(
    parameter PES  = 8,
    parameter BITS = 3   // log2(PES)
) (
    input  logic              clock,
    input  logic              reset,
    input  logic              draft,
    input  logic              step,
    input  logic              last,
    input  logic [   PES-1:0] masked,
    input  logic [16*PES-1:0] activations,
    input  logic [16*PES-1:0] stored,
    input  logic [      47:0] scales,       // BF16, one for each lane
    input  logic [      95:0] running,
    output logic [      95:0] totals
);
  localparam UPPER = 7 - BITS;

  // Operands, one cycle after the step.
  logic [PES-1:0] masked_now;
  logic [16*PES-1:0] activations_now;
  logic [15*PES-1:0] weights_now, weights;
  always_ff @(posedge clock) begin
    masked_now <= masked;
    activations_now <= activations;
    weights_now <= weights;
  end

  // The scales wait for their group's sum.
  logic [9*48-1:0] scales_waiting;
  always_ff @(posedge clock) scales_waiting <= {scales_waiting[8*48-1:0], scales};
  wire [47:0] scales_now = scales_waiting[9*48-1:8*48];

  // When the numbers of a step reach the upper levels.
  logic [BITS+1:0] steps, lasts;
  always_ff @(posedge clock) begin
    steps <= reset ? {(BITS + 2) {1'b0}} : {steps[BITS:0], step};
    lasts <= {lasts[BITS:0], last};
  end

  // Node 1 is the root, node n has the children 2n and 2n + 1, and nodes PES to 2 PES - 1 are the products.
  wire [96*2*PES-1:0] nodes;
  assign nodes[95:0] = 96'd0;
  logic [95:0] scaled;

  genvar p;
  generate
    for (p = 0; p < PES; p = p + 1) begin : pes
      wire [95:0] added;
      wire [95:0] sums;
      weight_decoder decoder (
          .draft(draft),
          .stored(stored[16*p+:16]),
          .weight(weights[15*p+:15])
      );
      pe unit (
          .clock(clock),
          .draft(draft),
          .masked(masked_now[p]),
          .activation(activations_now[16*p+:16]),
          .weight(weights_now[15*p+:15]),
          .products(nodes[96*(PES+p)+:96]),
          .left(p == 0 ? scaled : nodes[96*(2*p)+:96]),
          .right(p == 0 ? running : nodes[96*(2*p+1)+:96]),
          .added(added),
          .sums(sums)
      );
      if (p == 0) begin : accumulates
        assign totals = added;
      end else begin : adds
        assign nodes[96*p+:96] = sums;
      end
    end
  endgenerate

  genvar lane, level;
  generate
    for (lane = 0; lane < 3; lane = lane + 1) begin : lanes
      wire [UPPER:0] valid;
      wire [UPPER:0] ends;
      wire [32*(UPPER+1)-1:0] values;
      assign valid[0] = steps[BITS+1];
      assign ends[0] = lasts[BITS+1];
      assign values[31:0] = nodes[96+32*lane+:32];
      for (level = 0; level < UPPER; level = level + 1) begin : upper
        tree_level one (
            .clock(clock),
            .reset(reset),
            .valid(valid[level]),
            .last(ends[level]),
            .value(values[32*level+:32]),
            .sum_valid(valid[level+1]),
            .sum_last(ends[level+1]),
            .sum(values[32*(level+1)+:32])
        );
      end
      wire [31:0] product;
      fp32_multiply scaler (
          .a(values[32*UPPER+:32]),
          .b({scales_now[16*lane+:16], 16'd0}),
          .product(product)
      );
      always_ff @(posedge clock) scaled[32*lane+:32] <= draft ? product : values[32*UPPER+:32];
    end
  endgenerate
endmodule
