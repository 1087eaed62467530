// Reads JSON strings, one a line, and prints how many tokens of o200k_base each has.
import { createInterface } from "node:readline";
import { Tiktoken } from "js-tiktoken/lite";
import ranks from "js-tiktoken/ranks/o200k_base";

const encoder = new Tiktoken(ranks);
for await (const line of createInterface({ input: process.stdin })) {
  console.log(encoder.encode(JSON.parse(line)).length);
}
