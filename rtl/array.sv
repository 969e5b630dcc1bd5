// A small array with its sequencer: TILES tiles, which share the outputs, the three buffers, and what asks the memory. It
// multiplies rows of activations with a matrix, block after block, as src/accelerator/cycles/engine.h describes: blocks are
// asked for as soon as half of the buffer for weights is free; the tiles take a block when all its words are there; a
// column's sums wait in half of the output buffer until they are drained, and the next but one does not begin before.
//
// The words of a block hold, lowest bits first, the weights in the order in which the tiles take them: for each TILES
// outputs (three times as many in quantize mode), for each PES inputs, output by output, none for outputs and inputs that
// are not there; in quantize mode the scales follow, all outputs of a group and then those of the next. A block has whole
// groups of 128 inputs, but for the last inputs; in quantize mode all inputs are whole groups.
module array #(
    parameter TILES       = 2,
    parameter PES         = 8,
    parameter BITS        = 3,      // log2(PES)
    parameter WORD_BYTES  = 8,
    parameter WEIGHTS     = 8192,   // nibbles in half of the buffer for weights
    parameter ACTIVATIONS = 4096,   // of all rows
    parameter SUMS        = 256,    // in half of the output buffer
    parameter LANES       = 4       // of the drain
) (
    input logic clock,
    input logic reset,

    // A product, which begins in the cycle after `start`.
    input  logic        start,
    input  logic        draft,
    input  logic        single,
    input  logic [15:0] rows,
    input  logic [15:0] outputs,
    input  logic [15:0] inputs,
    input  logic [15:0] block_outputs,
    input  logic [15:0] block_inputs,
    input  logic [15:0] drain_latency,
    input  logic [15:0] drain_passes,
    output logic        busy,

    input logic        write_activation,
    input logic [15:0] activation_address,  // row * inputs + input
    input logic [15:0] activation_value,

    // The memory grants words when it likes, and they arrive in order, in the same cycle or later.
    output logic                    memory_request,
    input  logic                    memory_grant,
    input  logic                    memory_valid,
    input  logic [8*WORD_BYTES-1:0] memory_word,

    output logic [   LANES-1:0] drained,
    output logic [16*LANES-1:0] drained_index,   // row * outputs of the column + output
    output logic [32*LANES-1:0] drained_value,
    output logic                column_drained
);
  localparam DEPTH = 10;  // cycles from a step to its place in the output buffer
  localparam NIBBLES = 2 * WORD_BYTES;

  logic [3:0] weights[0:2*WEIGHTS-1];
  logic [15:0] activations[0:ACTIVATIONS-1];
  logic [31:0] sums[0:2*SUMS-1];
  logic [1:0] asked;  // all words of a half's block are granted, and the tiles have not taken it
  logic [1:0] there;  // all of them have arrived

  always_ff @(posedge clock) if (write_activation) activations[activation_address] <= activation_value;

  // Asking for words.
  logic ask_active, ask_half, ask_ends;
  logic [15:0] ask_output, ask_input, ask_outputs, ask_inputs;
  logic [31:0] ask_words, granted;
  assign memory_request = ask_active && !asked[ask_half];
  wire grants = memory_request && memory_grant;
  wire asked_all = grants && granted + 32'd1 == ask_words;
  block_walk asks (
      .clock(clock), .reset(reset), .start(start), .next(asked_all), .single(single),
      .outputs(outputs), .inputs(inputs), .block_outputs(block_outputs), .block_inputs(block_inputs),
      .active(ask_active), .half(ask_half), .first_output(ask_output), .first_input(ask_input),
      .count_outputs(ask_outputs), .count_inputs(ask_inputs), .ends_column(ask_ends)
  );
  block_words #(.WORD_BYTES(WORD_BYTES)) words_asked (
      .draft(draft), .outputs(ask_outputs), .inputs(ask_inputs), .words(ask_words)
  );

  // Words that arrive.
  logic get_active, get_half, get_ends;
  logic [15:0] get_output, get_input, get_outputs, get_inputs;
  logic [31:0] get_words, arrived;
  wire arrived_all = memory_valid && arrived + 32'd1 == get_words;
  block_walk arrives (
      .clock(clock), .reset(reset), .start(start), .next(arrived_all), .single(single),
      .outputs(outputs), .inputs(inputs), .block_outputs(block_outputs), .block_inputs(block_inputs),
      .active(get_active), .half(get_half), .first_output(get_output), .first_input(get_input),
      .count_outputs(get_outputs), .count_inputs(get_inputs), .ends_column(get_ends)
  );
  block_words #(.WORD_BYTES(WORD_BYTES)) words_arriving (
      .draft(draft), .outputs(get_outputs), .inputs(get_inputs), .words(get_words)
  );
  integer n;
  always_ff @(posedge clock) begin
    if (memory_valid) begin
      for (n = 0; n < NIBBLES; n = n + 1) begin
        weights[(get_half ? WEIGHTS : 0)+arrived*NIBBLES+n] <= memory_word[4*n+:4];
      end
    end
  end

  // Blocks that the tiles take, step by step: rows, then outputs, then inputs.
  logic active, half, ends_column;
  logic [15:0] first_output, first_input, block_o, block_i;
  logic [15:0] row, output_now, input_now;
  logic [31:0] place;  // of the next weight in the half
  logic column_begun, sums_half;
  logic [1:0] taken;  // halves of the output buffer
  wire [15:0] reach = draft ? 3 * TILES : TILES;
  wire [15:0] outputs_left = block_o - output_now;
  wire [15:0] inputs_left = block_i - input_now;
  wire [15:0] step_outputs = outputs_left < reach ? outputs_left : reach;
  wire [15:0] step_inputs = inputs_left < PES ? inputs_left : PES;
  wire ends_inputs = step_inputs == inputs_left;
  wire ends_outputs = ends_inputs && step_outputs == outputs_left;
  wire ends_block = ends_outputs && row + 16'd1 == rows;
  wire step = active && there[half] && (column_begun || !taken[sums_half]);
  wire takes_all = step && ends_block;
  block_walk takes (
      .clock(clock), .reset(reset), .start(start), .next(takes_all), .single(single),
      .outputs(outputs), .inputs(inputs), .block_outputs(block_outputs), .block_inputs(block_inputs),
      .active(active), .half(half), .first_output(first_output), .first_input(first_input),
      .count_outputs(block_o), .count_inputs(block_i), .ends_column(ends_column)
  );

  logic frees, drain_half;
  always_ff @(posedge clock) begin
    if (reset || start) begin
      asked <= 2'b0;
      there <= 2'b0;
      granted <= 32'd0;
      arrived <= 32'd0;
      row <= 16'd0;
      output_now <= 16'd0;
      input_now <= 16'd0;
      place <= 32'd0;
      column_begun <= 1'b0;
      sums_half <= 1'b0;
      taken <= 2'b0;
    end else begin
      if (grants) granted <= asked_all ? 32'd0 : granted + 32'd1;
      if (memory_valid) arrived <= arrived_all ? 32'd0 : arrived + 32'd1;
      if (takes_all) begin
        asked[half] <= 1'b0;
        there[half] <= 1'b0;
      end
      if (asked_all) asked[ask_half] <= 1'b1;
      if (arrived_all) there[get_half] <= 1'b1;
      if (frees) taken[drain_half] <= 1'b0;
      if (step) begin
        taken[sums_half] <= 1'b1;
        column_begun <= !(ends_block && ends_column);
        if (ends_block && ends_column) sums_half <= !sums_half && !single;
        input_now <= ends_inputs ? 16'd0 : input_now + step_inputs;
        if (ends_inputs) output_now <= ends_outputs ? 16'd0 : output_now + step_outputs;
        if (ends_outputs) row <= ends_block ? 16'd0 : row + 16'd1;
        place <= ends_outputs ? 32'd0 : place + ((step_outputs * step_inputs) << (draft ? 0 : 2));
      end
    end
  end
  assign busy = ask_active || active || taken != 2'b0;

  // What a step gives the tiles.
  wire [31:0] base = half ? WEIGHTS : 0;
  wire ends_group = ends_inputs || ((input_now + step_inputs) & 16'd127) == 16'd0;
  wire [31:0] scale_base = base + block_o * block_i + (((input_now >> 7) * block_o + output_now) << 2);
  logic [16*PES*TILES-1:0] stored;
  logic [16*PES-1:0] row_activations;
  logic [PES-1:0] masked;
  logic [48*TILES-1:0] scales;
  integer t, p, lane;
  always_comb begin
    stored = 0;
    scales = 0;
    row_activations = 0;
    masked = 0;
    for (p = 0; p < PES; p = p + 1) begin
      masked[p] = p >= step_inputs;
      if (p < step_inputs) row_activations[16*p+:16] = activations[row*inputs+first_input+input_now+p];
      for (t = 0; t < TILES; t = t + 1) begin
        for (lane = 0; lane < 3; lane = lane + 1) begin
          if (draft && p < step_inputs && 3 * t + lane < step_outputs) begin
            stored[16*(PES*t+p)+4*lane+:4] = weights[base+place+(3*t+lane)*step_inputs+p];
          end
        end
        for (lane = 0; lane < 4; lane = lane + 1) begin
          if (!draft && p < step_inputs && t < step_outputs) begin
            stored[16*(PES*t+p)+4*lane+:4] = weights[base+place+4*(t*step_inputs+p)+lane];
          end
        end
      end
    end
    for (t = 0; t < 3 * TILES; t = t + 1) begin
      for (lane = 0; lane < 4; lane = lane + 1) begin
        if (draft && ends_group && t < step_outputs) begin
          scales[16*t+4*lane+:4] = weights[scale_base+4*t+lane];
        end
      end
    end
  end

  // What waits for a step's sums, the latest first: whether there are any, whether they begin an output or end a column,
  // where they belong, and how many values the column has.
  localparam TAG = 3 + 1 + 16 + 16 + 16;
  logic [TAG*DEPTH-1:0] tags;
  wire begins = first_input == 16'd0 && input_now < 16'd128;
  wire [15:0] column_values = rows * block_o;
  wire [15:0] sums_place = row * block_o + output_now;
  wire [TAG-1:0] tag = {step && ends_group, step && ends_block && ends_column, begins, sums_half, sums_place, step_outputs,
                        column_values};
  always_ff @(posedge clock) tags <= reset ? {TAG * DEPTH{1'b0}} : {tags[TAG*(DEPTH-1)-1:0], tag};
  wire [TAG-1:0] due = tags[TAG*DEPTH-1:TAG*(DEPTH-1)];
  wire due_valid = due[51];
  wire due_whole = due[50];
  wire due_begins = due[49];
  wire due_half = due[48];
  wire [15:0] due_place = due[47:32];
  wire [15:0] due_outputs = due[31:16];
  wire [15:0] due_values = due[15:0];

  logic [96*TILES-1:0] running;
  wire [96*TILES-1:0] totals;
  integer j;
  // The place in the output buffer of what a lane of a tile, counted through, adds now.
  function automatic [31:0] place_of(input integer lane_number, input is_draft, input is_half, input [15:0] first);
    place_of = (is_half ? SUMS : 0) + {16'd0, first} + (is_draft ? lane_number : lane_number / 3);
  endfunction
  always_comb begin
    running = 0;
    for (j = 0; j < 3 * TILES; j = j + 1) begin
      if (!due_begins && (draft || j % 3 == 0)) running[32*j+:32] = sums[place_of(j, draft, due_half, due_place)];
    end
  end
  integer k;
  always_ff @(posedge clock) begin
    for (k = 0; k < 3 * TILES; k = k + 1) begin
      if (due_valid && (draft ? k < due_outputs : k % 3 == 0 && k / 3 < due_outputs)) begin
        sums[place_of(k, draft, due_half, due_place)] <= totals[32*k+:32];
      end
    end
  end

  genvar g;
  generate
    for (g = 0; g < TILES; g = g + 1) begin : tiles
      tile #(
          .PES (PES),
          .BITS(BITS)
      ) one (
          .clock(clock),
          .reset(reset),
          .draft(draft),
          .step(step),
          .last(ends_group),
          .masked(masked),
          .activations(row_activations),
          .stored(stored[16*PES*g+:16*PES]),
          .scales(scales[48*g+:48]),
          .running(running[96*g+:96]),
          .totals(totals[96*g+:96])
      );
    end
  endgenerate

  drain #(
      .LANES(LANES)
  ) draining (
      .clock(clock),
      .reset(reset || start),
      .single(single),
      .latency(drain_latency),
      .passes(drain_passes),
      .whole(due_whole),
      .whole_values(due_values),
      .frees(frees),
      .half(drain_half),
      .valid(drained),
      .index(drained_index)
  );
  integer d;
  always_comb begin
    drained_value = 0;
    for (d = 0; d < LANES; d = d + 1) begin
      drained_value[32*d+:32] = sums[(drain_half ? SUMS : 0)+drained_index[16*d+:16]];
    end
  end
  assign column_drained = frees;
endmodule
