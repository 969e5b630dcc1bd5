// The decoder of quantize mode (SPEQ, figure 5a): the exponent of a draft weight from its code. The code's bits are
// counted from the most significant one, as the paper does: c0 is code[2].
module decode_draft (
    input  logic [2:0] code,
    output logic [3:0] exponent
);
  wire looked_up = ~(code[2] | code[0]);
  assign exponent = looked_up ? {2'b10, code[1], 1'b1} : {code, 1'b0};
endmodule
