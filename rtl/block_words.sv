// The words of a memory that a block takes: 16 bits a weight in full mode; 4 in quantize mode, and a scale of 16 bits for
// each output and 128 inputs.
module block_words #(
    parameter WORD_BYTES = 8
) (
    input  logic        draft,
    input  logic [15:0] outputs,
    input  logic [15:0] inputs,
    output logic [31:0] words
);
  wire [31:0] weights = {16'd0, outputs} * {16'd0, inputs};
  wire [31:0] bytes = draft ? (weights * 32'd33 + 32'd63) >> 6 : weights << 1;
  assign words = (bytes + WORD_BYTES - 1) / WORD_BYTES;
endmodule
