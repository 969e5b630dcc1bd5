// The sum of two FP32 numbers, rounded to the nearest, ties to even, with subnormal numbers, as a host's float has it. A
// NaN that comes out is always 7fc00000.
module fp32_add (
    input  logic [31:0] a,
    input  logic [31:0] b,
    output logic [31:0] sum
);
  wire a_is_larger = a[30:0] >= b[30:0];
  wire [31:0] greater = a_is_larger ? a : b;
  wire [31:0] lesser = a_is_larger ? b : a;
  wire subtract = a[31] ^ b[31];

  // The exponent of a subnormal number is that of the least normal one.
  wire [7:0] greater_exponent = greater[30:23] == 8'd0 ? 8'd1 : greater[30:23];
  wire [7:0] lesser_exponent = lesser[30:23] == 8'd0 ? 8'd1 : lesser[30:23];
  wire [7:0] distance = greater_exponent - lesser_exponent;

  // Three bits below the larger number's lowest one, the last of which gathers all further ones.
  wire [26:0] wide = {greater[30:23] != 8'd0, greater[22:0], 3'b0};
  wire [26:0] narrow = {lesser[30:23] != 8'd0, lesser[22:0], 3'b0};
  wire [53:0] shifted = {narrow, 27'b0} >> (distance > 8'd27 ? 8'd27 : distance);
  wire [26:0] aligned = {shifted[53:28], shifted[27:0] != 28'd0};
  wire [27:0] total = subtract ? {1'b0, wide} - {1'b0, aligned} : {1'b0, wide} + {1'b0, aligned};

  // One bit to the right after a carry; otherwise to the left, as far as the exponent allows.
  logic [4:0] zeros;
  leading_zeros #(
      .WIDTH(27),
      .BITS (5)
  ) counter (
      .word (total[26:0]),
      .count(zeros)
  );
  wire [7:0] room = greater_exponent - 8'd1;
  wire [7:0] left = {3'b0, zeros} < room ? {3'b0, zeros} : room;
  wire [26:0] moved = total[26:0] << left[4:0];
  wire [26:0] normal = total[27] ? {total[27:2], total[1] | total[0]} : moved;
  wire [8:0] exponent = total[27] ? {1'b0, greater_exponent} + 9'd1 : {1'b0, greater_exponent - left};
  wire [8:0] field = normal[26] ? exponent : 9'd0;

  wire round_up = normal[2] & (normal[3] | normal[1] | normal[0]);
  wire [31:0] rounded = {field, normal[25:3]} + {31'b0, round_up};  // a carry moves into the exponent
  wire overflow = rounded[31:23] >= 9'd255;

  wire a_is_nan = a[30:0] > 31'h7f800000;
  wire b_is_nan = b[30:0] > 31'h7f800000;
  wire infinite = greater[30:23] == 8'hff;
  wire opposite = subtract && lesser[30:23] == 8'hff;

  always_comb begin
    if (a_is_nan || b_is_nan || (infinite && opposite)) sum = 32'h7fc00000;
    else if (infinite) sum = greater;
    else if (total == 28'd0) sum = {a[31] & b[31], 31'b0};
    else if (overflow) sum = {greater[31], 31'h7f800000};
    else sum = {greater[31], rounded[30:0]};
  end
endmodule
