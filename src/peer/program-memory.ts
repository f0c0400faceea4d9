/** The memory of a peer whose gradients a program computes. `docs/reference/external.md` has the formula. */
import { totalmem } from 'node:os'
import { shapesOf } from '../admb/index.js'
import type { Layout } from '../learning/index.js'
import type { Log } from '../network/types.js'
import { ProgramError } from '../program/messages.js'
import { memoryBytes } from '../program/shared-memory.js'
import { learningParts } from '../task/learning-parts.js'
import type { LearningSpec } from '../task/learning-spec.js'

/** Bytes of a peer without a model. */
const BASE = 150e6
/** Neighbours in the estimate. A tree has two for each peer on average. */
const NEIGHBOURS = 2
/** Parameters from which the estimate is logged. */
const MIN_LOGGED = 1e6

/**
 * The memory of the process at its peak, in bytes, with the pages that it shares with the program, and with two neighbours. It holds
 * three predictors: the current one, its parent, and one in a checkpoint or of a rival. The other vectors of float32 numbers are own
 * sums, open and closed, a sum in the making, steps for neighbours, and for each neighbour its sum and a frame. Integer sums also
 * have what rounding has left, and the grids of two predictors.
 */
export async function memoryOf(spec: LearningSpec): Promise<number> {
  const { learner, recipe } = await learningParts(spec)
  const { parameters, average, state } = shapesOf(learner.layout, recipe)
  const vector = bytesOf(parameters)
  const predictor = vector + bytesOf(average) + bytesOf(state)
  const rounding = recipe.rule.grid === undefined ? 0 : vector + vector / 2
  const sums = 4 * vector + rounding + NEIGHBOURS * 2 * vector
  return BASE + memoryBytes(parameters) + 3 * predictor + sums
}

/**
 * Logs the memory that a large model needs.
 * @param available bytes of the machine @default its memory, or the limit of its container
 * @throws ProgramError if the machine has less
 */
export async function checkMemory(spec: LearningSpec, log: Log, available = machineMemory()): Promise<void> {
  const bytes = await memoryOf(spec)
  const { blocks } = (await learningParts(spec)).learner.layout
  const parameters = parametersOf({ blocks })
  const needs = `${parameters.toLocaleString('en')} parameters need about ${gigabytes(bytes)} in this process`
  if (bytes > available)
    throw new ProgramError(
      `${needs}, and the machine has ${gigabytes(available)}: give a rule with less state, --average none, or a smaller model`
    )
  if (parameters >= MIN_LOGGED)
    log('info', `${needs}, of which the program shares ${gigabytes(memoryBytes({ blocks }))}`, { bytes })
}

function bytesOf({ blocks }: Layout): number {
  return 4 * parametersOf({ blocks })
}

function parametersOf({ blocks }: Layout): number {
  return blocks.reduce((sum, { length }) => sum + length, 0)
}

function machineMemory(): number {
  const limit = process.constrainedMemory?.() ?? 0
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`
}
