/** `admb tokenizer train`: word pieces or byte pairs from texts, for networks that read text. */

import { writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { fileProblem } from '../../base/errors.js'
import { tokenizerFrom } from '../../task/texts.js'
import { UsageError } from '../errors.js'
import { add } from '../options/command.js'
import type { Flags } from '../options/table.js'
import { print, printJson } from '../output/output.js'

export function tokenizerCommand(program: Command): Command {
  const command = program.command('tokenizer')
  const help = `Word pieces are lower case, as in BERT; byte pairs keep every text, as in
GPT-2. Peers must have the same tokenizer: give all of them the same file.

Examples:
  admb tokenizer train --data reviews.csv --kind wordpiece --size 8000
  admb train --model transformer --data reviews.csv --label liked \\
    --tokenizer tokenizer.json`
  add(command, 'tokenizer train', { summary: 'train word pieces or byte pairs from texts', help }, train)
  return command.addHelpText('after', '\nExamples:\n  admb tokenizer train --data reviews.csv --kind wordpiece')
}

async function train({ kind, size, out, json: isJson, ...data }: Flags<'tokenizer train'>): Promise<void> {
  const { json, ...trained } = await tokenizerFrom(data, kind, size)
  try {
    await writeFile(out, `${json}\n`)
  } catch (error) {
    throw new UsageError(`cannot write ${out} (${fileProblem(error)}): check the path after --out`)
  }
  const { vocabulary, texts, tokensPerCharacter } = trained
  if (isJson) printJson({ command: 'tokenizer', kind, file: out, vocabulary, texts, tokensPerCharacter })
  else print(`wrote ${out}: ${vocabulary} tokens from ${texts} texts, ${tokensPerCharacter.toFixed(2)} per character`)
}
