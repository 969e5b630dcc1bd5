// Goes through the blocks of a matrix: all inputs of some outputs, then of the next ones. The array has three of these: for
// the words that it asks the memory for, for those that arrive, and for the blocks that it multiplies.
module block_walk (
    input  logic        clock,
    input  logic        reset,
    input  logic        start,
    input  logic        next,
    input  logic        single,           // buffers have one half
    input  logic [15:0] outputs,          // of the matrix
    input  logic [15:0] inputs,
    input  logic [15:0] block_outputs,
    input  logic [15:0] block_inputs,
    output logic        active,
    output logic        half,             // of the buffer for weights
    output logic [15:0] first_output,     // of this block
    output logic [15:0] first_input,
    output logic [15:0] count_outputs,
    output logic [15:0] count_inputs,
    output logic        ends_column       // no further inputs for these outputs
);
  wire [15:0] outputs_left = outputs - first_output;
  wire [15:0] inputs_left = inputs - first_input;
  assign count_outputs = outputs_left < block_outputs ? outputs_left : block_outputs;
  assign count_inputs = inputs_left < block_inputs ? inputs_left : block_inputs;
  assign ends_column = count_inputs == inputs_left;

  always_ff @(posedge clock) begin
    if (reset || start) begin
      active <= start && !reset;
      half <= 1'b0;
      first_output <= 16'd0;
      first_input <= 16'd0;
    end else if (next) begin
      half <= !half && !single;
      first_input <= ends_column ? 16'd0 : first_input + count_inputs;
      if (ends_column) first_output <= first_output + count_outputs;
      if (ends_column && count_outputs == outputs_left) active <= 1'b0;
    end
  end
endmodule
