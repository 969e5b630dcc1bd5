// A Wallace tree for 11 by 6 bits: six partial products become two numbers, whose sum is the product.
module wallace_tree (
    input  logic [10:0] multiplicand,
    input  logic [ 5:0] multiplier,
    output logic [16:0] sum,
    output logic [16:0] carry
);
  function automatic [16:0] majority(input [16:0] a, input [16:0] b, input [16:0] c);
    majority = (a & b) | (a & c) | (b & c);
  endfunction

  wire [16:0] r0 = multiplier[0] ? {6'b0, multiplicand} : 17'b0;
  wire [16:0] r1 = multiplier[1] ? {5'b0, multiplicand, 1'b0} : 17'b0;
  wire [16:0] r2 = multiplier[2] ? {4'b0, multiplicand, 2'b0} : 17'b0;
  wire [16:0] r3 = multiplier[3] ? {3'b0, multiplicand, 3'b0} : 17'b0;
  wire [16:0] r4 = multiplier[4] ? {2'b0, multiplicand, 4'b0} : 17'b0;
  wire [16:0] r5 = multiplier[5] ? {1'b0, multiplicand, 5'b0} : 17'b0;

  wire [16:0] s1 = r0 ^ r1 ^ r2;
  wire [16:0] c1 = majority(r0, r1, r2) << 1;
  wire [16:0] s2 = r3 ^ r4 ^ r5;
  wire [16:0] c2 = majority(r3, r4, r5) << 1;
  wire [16:0] s3 = s1 ^ c1 ^ s2;
  wire [16:0] c3 = majority(s1, c1, s2) << 1;
  assign sum   = s3 ^ c3 ^ c2;
  assign carry = majority(s3, c3, c2) << 1;
endmodule
