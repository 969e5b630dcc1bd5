// The multiplier of a PE (SPEQ, IV-C). In full mode it multiplies two significands of 11 bits, hidden ones included: the
// weight's halves go through a Wallace tree each, each tree has an adder, and the two results are added. In quantize mode
// the trees are masked out, and their adders add the activation's exponent to those of the second and third weight.
module mantissa_multiplier (
    input  logic        draft,
    input  logic [10:0] activation,
    input  logic [10:0] weight,
    input  logic [ 4:0] exponent,
    input  logic [ 3:0] second,
    input  logic [ 3:0] third,
    output logic [21:0] product,
    output logic [ 5:0] second_sum,
    output logic [ 5:0] third_sum
);
  wire [10:0] masked = draft ? 11'b0 : activation;
  logic [16:0] upper_sum, upper_carry, lower_sum, lower_carry;

  wallace_tree upper_tree (
      .multiplicand(masked),
      .multiplier(weight[10:5]),
      .sum(upper_sum),
      .carry(upper_carry)
  );
  wallace_tree lower_tree (
      .multiplicand(masked),
      .multiplier({1'b0, weight[4:0]}),
      .sum(lower_sum),
      .carry(lower_carry)
  );

  wire [16:0] upper = (draft ? {12'b0, exponent} : upper_sum) + (draft ? {13'b0, second} : upper_carry);
  wire [16:0] lower = (draft ? {12'b0, exponent} : lower_sum) + (draft ? {13'b0, third} : lower_carry);
  assign product = {upper, 5'b0} + {5'b0, lower};
  assign second_sum = upper[5:0];
  assign third_sum = lower[5:0];
endmodule
