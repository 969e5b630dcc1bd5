// What figure 3 of SPEQ says of the decoders, for one weight below 2 in magnitude: `right` is to hold for every sign,
// exponent and mantissa. Yosys proves it, and Icarus goes through all inputs.
module decoders_proof (
    input  logic       sign,
    input  logic [3:0] exponent,
    input  logic [9:0] mantissa,
    output logic       right
);
  // How the figure codes an exponent, and what the draft makes of it.
  logic flag;
  logic [2:0] code;
  logic [3:0] draft;
  always_comb begin
    case (exponent)
      4'd0, 4'd1: {flag, code, draft} = {1'b1, 3'd1, 4'd2};
      4'd2, 4'd3: {flag, code, draft} = {1'b0, 3'd1, 4'd2};
      4'd4, 4'd5: {flag, code, draft} = {1'b1, 3'd3, 4'd6};
      4'd6, 4'd7: {flag, code, draft} = {1'b0, 3'd3, 4'd6};
      4'd8: {flag, code, draft} = {1'b0, 3'd4, 4'd8};
      4'd9: {flag, code, draft} = {1'b1, 3'd0, 4'd9};
      4'd10: {flag, code, draft} = {1'b0, 3'd5, 4'd10};
      4'd11: {flag, code, draft} = {1'b1, 3'd2, 4'd11};
      4'd12, 4'd13: {flag, code, draft} = {1'b0, 3'd6, 4'd12};
      default: {flag, code, draft} = {1'b0, 3'd7, 4'd14};
    endcase
  end

  logic [14:0] full, drafts;
  weight_decoder full_mode (
      .draft (1'b0),
      .stored({sign, code, flag, exponent[0], mantissa}),
      .weight(full)
  );
  weight_decoder quantize_mode (
      .draft (1'b1),
      .stored({4'b0, {3{sign, code}}}),
      .weight(drafts)
  );
  assign right = full == {sign, exponent, mantissa} && drafts == {3{sign, draft}};
`ifdef FORMAL
  always_comb assert (right);
`endif
endmodule
