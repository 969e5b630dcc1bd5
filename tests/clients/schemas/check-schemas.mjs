// Reads the lines of `verbatim-bench structures` from standard input and validates every reply with ajv:
//
//   node check-schemas.mjs SCHEMAS.jsonl < replies.jsonl
//
// Prints a line of totals, and before it a line for each of the first failures. Exits with 1 when a reply does not
// parse, is not valid, was cut off, or is not the same with every recipe.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

const schemas = readFileSync(process.argv[2], "utf8").split("\n").filter((line) => line !== "");
const ajv = new Ajv2020({ strict: false, allErrors: false });
addFormats(ajv);
const validators = new Map();

function validatorOf(index) {
  if (!validators.has(index)) validators.set(index, ajv.compile(JSON.parse(schemas[index])));
  return validators.get(index);
}

const totals = { replies: 0, valid: 0, identical: 0, cut: 0, tokens: 0, passes: 0, drafted: 0, accepted: 0 };
const used = new Set();
let failures = 0;

function fail(reply, why) {
  if (++failures <= 20) {
    console.error(`schema ${reply.schema}, seed ${reply.seed}, temperature ${reply.temperature}: ${why}: ${reply.text}`);
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  if (line === "") continue;
  const reply = JSON.parse(line);
  used.add(reply.schema);
  for (const each of reply.recipes) {
    totals.replies += 1;
    if (each.recipe !== "plain") {
      totals.tokens += each.tokens;
      totals.passes += each.passes;
      totals.drafted += each.structure_drafted;
      totals.accepted += each.structure_accepted;
    }
    if (reply.finish !== "eos") {
      totals.cut += 1;
      fail(reply, `ended by ${reply.finish}`);
      continue;
    }
    let value;
    try {
      value = JSON.parse(each.text);
    } catch (error) {
      fail(reply, `${each.recipe} does not parse`);
      continue;
    }
    const validate = validatorOf(reply.schema);
    if (validate(value)) {
      totals.valid += 1;
    } else {
      fail(reply, `${each.recipe} is not valid (${ajv.errorsText(validate.errors)})`);
    }
  }
  if (reply.identical) {
    totals.identical += reply.recipes.length;
  } else {
    fail(reply, "the recipes differ");
  }
}

const perPass = totals.passes > 0 ? (totals.tokens / totals.passes).toFixed(2) : "0";
console.log(
  `${used.size} schemas, ${totals.replies} replies: ${totals.valid} valid, ${totals.identical} byte-identical, ` +
    `${totals.cut} cut off; ${perPass} tokens per pass, ` +
    `${totals.accepted} of ${totals.drafted} tokens of forced text kept`,
);
process.exit(failures === 0 && totals.replies > 0 ? 0 : 1);
