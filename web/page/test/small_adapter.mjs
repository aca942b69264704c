// A small adapter of the shipped model: a PEFT folder that changes one matrix a lot, with numbers from a fixed row.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const kColumns = 512; // of the shipped model
const kRank = 4;
const kConfig = { peft_type: 'LORA', r: kRank, lora_alpha: 64, target_modules: ['o_proj'], task_type: 'CAUSAL_LM' };

/** @param {string} folder @returns {string[]} the paths of its two files */
export function writeAdapter(folder) {
  const count = kRank * kColumns;
  const tensors = ['lora_A', 'lora_B'].map((half, i) => [`base_model.model.model.layers.0.self_attn.o_proj.${half}.weight`,
    { dtype: 'F32', shape: i === 0 ? [kRank, kColumns] : [kColumns, kRank], data_offsets: [4 * i * count, 4 * (i + 1) * count] }]);
  const header = Buffer.from(JSON.stringify(Object.fromEntries(tensors)));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(header.length));
  const numbers = Float32Array.from({ length: 2 * count }, (_, i) => Math.sin(i * i) / 12);
  const files = ['adapter_config.json', 'adapter_model.safetensors'].map((name) => join(folder, name));
  writeFileSync(files[0], JSON.stringify(kConfig));
  writeFileSync(files[1], Buffer.concat([size, header, Buffer.from(numbers.buffer)]));
  return files;
}
