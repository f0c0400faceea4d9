/** `admb tokenizer train`: word pieces or byte pairs from texts, for networks that read text. */
import { writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { fileProblem } from '../../base/errors.js'
import type { TokenizerKind } from '../../nn/tokenizers/subwords.js'
import type { Delimiter, Format } from '../../streams/index.js'
import { tokenizerFrom, tokenizerKinds } from '../../task/texts.js'
import { UsageError } from '../errors.js'
import { withCommon } from '../options/options.js'
import { choice, delimiter, list, whole } from '../options/values.js'
import { print, printJson } from '../output/output.js'

interface Flags {
  readonly data: string
  readonly format?: Format
  readonly columns?: readonly string[]
  readonly label?: string
  readonly delimiter?: Delimiter
  readonly kind: TokenizerKind
  readonly size: number
  readonly out: string
  readonly json?: boolean
}

export function tokenizerCommand(program: Command): Command {
  const command = program.command('tokenizer')
  withCommon(command.command('train'))
    .description('train word pieces or byte pairs from texts')
    .requiredOption('--data <file>', 'CSV, Parquet, JSON lines or plain text; - for stdin')
    .option('--format <name>', 'csv, parquet or jsonl (default: from the file name)', choice(FORMATS))
    .option('--columns <list>', 'the text columns (default: those that look like text)', list)
    .option('--label <column>', 'the label column, which is not text')
    .option('--delimiter <char>', 'CSV: comma, semicolon, tab or pipe (default: inferred)', delimiter)
    .option('--kind <kind>', `${tokenizerKinds.join(' or ')}`, choice(tokenizerKinds), 'bpe')
    .option('--size <n>', 'maximum number of tokens', whole(257, 1_000_000), 8000)
    .option('--out <file>', 'output file', 'tokenizer.json')
    .addHelpText(
      'after',
      `
Word pieces are lower case, as in BERT; byte pairs keep every text, as in
GPT-2. Peers must have the same tokenizer: give all of them the same file.

Examples:
  admb tokenizer train --data reviews.csv --kind wordpiece --size 8000
  admb train --model transformer --data reviews.csv --label liked \\
    --tokenizer tokenizer.json`
    )
    .action(train)
  return command.addHelpText('after', '\nExamples:\n  admb tokenizer train --data reviews.csv --kind wordpiece')
}

const FORMATS = ['csv', 'parquet', 'jsonl'] as const

async function train({ kind, size, out, json: isJson, ...data }: Flags): Promise<void> {
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
