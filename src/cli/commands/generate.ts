/** `admb generate`: text by a model that predicts the next token. */
import type { Command } from 'commander'
import type { NetworkSpec } from '../../nn/spec/network-spec.js'
import { languageModel } from '../../task/checkpoint.js'
import { UsageError } from '../errors.js'
import { add } from '../options/command.js'
import { executionOf } from '../options/settings.js'
import type { Flags } from '../options/table.js'
import { printJson } from '../output/output.js'
import { loadStored, withReadableWeights } from '../training/stored.js'

const TOKENS = 64

export function generateCommand(program: Command): Command {
  return add(
    program,
    'generate',
    {
      help: `All weights are on the device, with the keys and values of the text so far. The
text ends after --tokens, or when the model has no further positions.

Examples:
  admb generate --dir book --prompt 'To be, or' --temperature 0.8 --top-k 40
  admb generate --weights gpt2 --prompt 'The river' --tokens 200 --seed 7`
    },
    generate
  )
}

async function generate(given: Flags<'generate'>): Promise<void> {
  const flags = await withReadableWeights(given)
  const { spec, blocks, updates } = await loadModel(flags)
  const { createTokenizer, deviceFor, Generation, networkModel, TextReader } = await import('../../l2l/index.js')
  await deviceFor(executionOf(flags))
  if (spec.text === undefined) throw new UsageError('the model does not read text: give a language model')
  const tokenizer = createTokenizer(spec.text)
  const prompt = tokenizer.encode(flags.prompt)
  const generation = new Generation(networkModel(spec), blocks, updates)
  const reader = new TextReader(tokenizer, prompt)
  const made: number[] = []
  try {
    if (!flags.json) process.stdout.write(flags.prompt)
    for (const token of generation.tokens(prompt, flags.tokens ?? TOKENS, flags)) {
      made.push(token)
      const piece = reader.next(token)
      if (!flags.json) process.stdout.write(piece)
    }
  } finally {
    generation.close()
  }
  if (!flags.json) process.stdout.write('\n')
  else printJson({ command: 'generate', prompt, tokens: made, text: tokenizer.decode([...prompt, ...made]) })
}

interface LoadedModel {
  readonly spec: NetworkSpec
  readonly blocks: readonly Float32Array[]
  /** Undefined if all layers take part. */
  readonly updates?: number
}

async function loadModel({ dir, weights, predictWith }: Flags<'generate'>): Promise<LoadedModel> {
  if (weights !== undefined && dir === undefined) return languageModel(weights)
  const { spec, predictor } = await loadStored(dir, undefined)
  if (spec.network === undefined)
    throw new UsageError(`the model ${spec.model} does not generate text: give a language model`)
  const blocks = predictWith === 'current' ? predictor.parameters : predictor.average
  const { wholeBlocks, wholeNetwork } = await import('../../l2l/index.js')
  const whole = wholeBlocks(spec.network, blocks, weights)
  return { spec: wholeNetwork(spec.network), blocks: whole, updates: predictor.id.updates }
}
