// What stands between the buffer for weights and one PE. In full mode `stored` is Wq (4 bits) and Wr (12 bits) and
// `weight` is S1E4M10; in quantize mode `stored` has three Wq in its low 12 bits and `weight` three S1E4, the first lowest.
module weight_decoder (
    input  logic        draft,
    input  logic [15:0] stored,
    output logic [14:0] weight
);
  logic [14:0] drafts;
  logic [3:0] exponent;

  genvar lane;
  generate
    for (lane = 0; lane < 3; lane = lane + 1) begin : lanes
      assign drafts[5*lane+4] = stored[4*lane+3];
      decode_draft decoder (
          .code(stored[4*lane+:3]),
          .exponent(drafts[5*lane+:4])
      );
    end
  endgenerate

  decode_full decoder (
      .code(stored[14:12]),
      .flag(stored[11]),
      .lowest(stored[10]),
      .exponent(exponent)
  );
  assign weight = draft ? drafts : {stored[15], exponent, stored[9:0]};
endmodule
