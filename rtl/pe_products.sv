// The products of a PE (SPEQ, IV-C), without registers: an FP16 activation with one weight S1E4M10 in full mode, with three
// weights S1E4 in quantize mode, exact in FP32. One that is masked gives +0: a draft weight cannot be zero. FULL and DRAFT
// say which modes the PE has; with one of them it is what a PE of that mode alone would be.
module pe_products #(
    parameter FULL  = 1,
    parameter DRAFT = 1
) (
    input  logic        draft,
    input  logic        masked,
    input  logic [15:0] activation,
    input  logic [14:0] weight,
    output logic [95:0] products
);
  wire drafting = DRAFT != 0 && (FULL == 0 || draft);

  // The parts of the operands. The exponent of a subnormal number is that of the least normal one.
  wire [4:0] field = activation[14:10];
  wire [4:0] exponent = field == 5'd0 ? 5'd1 : field;
  wire [10:0] significand = {field != 5'd0, activation[9:0]};
  wire [3:0] weight_exponent = weight[13:10] == 4'd0 ? 4'd1 : weight[13:10];
  wire [10:0] weight_significand = FULL == 0 ? 11'd0 : {weight[13:10] != 4'd0, weight[9:0]};

  logic [21:0] product;
  logic [5:0] second_sum, third_sum;
  mantissa_multiplier multiplier (
      .draft(drafting),
      .activation(significand),
      .weight(weight_significand),
      .exponent(exponent),
      .second(DRAFT != 0 ? weight[8:5] : 4'd0),
      .third(DRAFT != 0 ? weight[13:10] : 4'd0),
      .product(product),
      .second_sum(second_sum),
      .third_sum(third_sum)
  );
  // The first weight's exponent has an adder of its own. Its sum has six bits.
  wire [5:0] first_sum = {1'b0, exponent} + {2'b0, drafting ? weight[3:0] : weight_exponent};

  // In quantize mode the activation's significand passes, and all three products have it.
  wire [21:0] passed = drafting ? {significand, 11'b0} : product;
  logic [4:0] zeros;
  leading_zeros #(
      .WIDTH(22),
      .BITS (5)
  ) counter (
      .word (passed),
      .count(zeros)
  );
  wire [21:0] normal = passed << zeros;
  wire [22:0] fraction = {normal[20:0], 2'b0};
  wire [7:0] base = (drafting ? 8'd97 : 8'd98) - {3'b0, zeros};

  // An activation that is infinite or NaN.
  wire special = field == 5'd31;
  wire is_nan = special && (activation[9:0] != 10'd0 || (!drafting && weight[13:0] == 14'd0));
  wire zero = passed == 22'd0;

  genvar lane;
  generate
    for (lane = 0; lane < 3; lane = lane + 1) begin : lanes
      if (lane == 0 || DRAFT != 0) begin : there
        wire sign = activation[15] ^ (lane == 0 && !drafting ? weight[14] : weight[5*lane+4]);
        wire [5:0] exponents = lane == 0 ? first_sum : lane == 1 ? second_sum : third_sum;
        wire idle = masked || (lane > 0 && !drafting);
        assign products[32*lane+:32] = idle ? 32'd0
            : is_nan ? 32'h7fc00000
            : special ? {sign, 31'h7f800000}
            : zero ? {sign, 31'd0}
            : {sign, base + {2'b0, exponents}, fraction};
      end else begin : left_out
        assign products[32*lane+:32] = 32'd0;
      end
    end
  endgenerate
endmodule
