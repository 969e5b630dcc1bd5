// The number of zeros before the first one of a word; WIDTH if there is none.
module leading_zeros #(
    parameter WIDTH = 22,
    parameter BITS  = 5    // of the number
) (
    input  logic [WIDTH-1:0] word,
    output logic [ BITS-1:0] count
);
  integer i;
  always_comb begin
    count = WIDTH[BITS-1:0];
    for (i = 0; i < WIDTH; i = i + 1) begin
      if (word[i]) count = WIDTH[BITS-1:0] - 1'b1 - i[BITS-1:0];
    end
  end
endmodule
