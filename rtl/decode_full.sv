// The decoder of full mode (SPEQ, figure 5b): the exponent of a weight from its code, its flag and the lowest bit of the
// exponent. The paper appends the flag; figure 3 has the lowest bit there, as here.
module decode_full (
    input  logic [2:0] code,
    input  logic       flag,
    input  logic       lowest,
    output logic [3:0] exponent
);
  logic [2:0] upper;
  always_comb begin
    case (code[1:0])
      2'b00:   upper = 3'b100;
      2'b10:   upper = 3'b101;
      2'b01:   upper = 3'b000;
      default: upper = 3'b010;
    endcase
    if (!flag) upper = code;
  end
  assign exponent = {upper, lowest};
endmodule
