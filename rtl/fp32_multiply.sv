// The product of two FP32 numbers, rounded to the nearest, ties to even, with subnormal numbers. A NaN that comes out is
// always 7fc00000. It multiplies the sum of a group with the group's scale.
module fp32_multiply (
    input  logic [31:0] a,
    input  logic [31:0] b,
    output logic [31:0] product
);
  wire sign = a[31] ^ b[31];
  wire [7:0] a_exponent = a[30:23] == 8'd0 ? 8'd1 : a[30:23];
  wire [7:0] b_exponent = b[30:23] == 8'd0 ? 8'd1 : b[30:23];
  wire [47:0] exact = {24'b0, a[30:23] != 8'd0, a[22:0]} * {24'b0, b[30:23] != 8'd0, b[22:0]};

  logic [5:0] zeros;
  leading_zeros #(
      .WIDTH(48),
      .BITS (6)
  ) counter (
      .word (exact),
      .count(zeros)
  );
  wire [47:0] normal = exact << zeros;
  // The exponent's field of a normal number, in two's complement.
  wire signed [10:0] field =
      $signed({3'b0, a_exponent}) + $signed({3'b0, b_exponent}) - 11'sd126 - $signed({5'b0, zeros});
  // A subnormal number moves to the right. All that is lost is gathered in the last bit.
  wire subnormal = field < 11'sd1;
  wire [10:0] deep = 11'sd1 - field;
  wire [5:0] right = !subnormal ? 6'd0 : deep > 11'd26 ? 6'd26 : deep[5:0];
  wire [73:0] moved = {normal, 26'b0} >> right;
  wire rest = moved[48:0] != 49'd0;
  wire round_up = moved[49] & (moved[50] | rest);
  wire [33:0] rounded = {subnormal ? 11'd0 : field, moved[72:50]} + {33'b0, round_up};
  wire overflow = rounded[33:23] >= 11'd255;

  wire a_is_nan = a[30:0] > 31'h7f800000;
  wire b_is_nan = b[30:0] > 31'h7f800000;
  wire infinite = a[30:23] == 8'hff || b[30:23] == 8'hff;
  wire zero = a[30:0] == 31'd0 || b[30:0] == 31'd0;

  always_comb begin
    if (a_is_nan || b_is_nan || (infinite && zero)) product = 32'h7fc00000;
    else if (infinite) product = {sign, 31'h7f800000};
    else if (zero) product = {sign, 31'd0};
    else if (overflow) product = {sign, 31'h7f800000};
    else product = {sign, rounded[30:0]};
  end
endmodule
