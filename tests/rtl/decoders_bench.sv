// Goes through all inputs of decoders_proof, and says how many are not right.
module decoders_bench;
  logic [14:0] weight;
  logic right;
  integer i;
  integer wrong;
  decoders_proof proof (
      .sign(weight[14]),
      .exponent(weight[13:10]),
      .mantissa(weight[9:0]),
      .right(right)
  );
  initial begin
    wrong = 0;
    for (i = 0; i < 32768; i = i + 1) begin
      weight = i[14:0];
      #1 if (right !== 1'b1) wrong = wrong + 1;
    end
    $display("%0d of %0d weights are wrong", wrong, i);
    $finish;
  end
endmodule
