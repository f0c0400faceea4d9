/** What each layer of a model takes of memory and work: the planner's input. */
import { FLOAT_BYTES, sizeOf, totalSize } from './shape.js'
import type { Layer, Model } from './types.js'

export interface LayerCosts {
  readonly name: string
  readonly kind: string
  /** Parameters. */
  readonly parameters: number
  readonly weightBytes: number
  /** A: bytes of output a sample. */
  readonly outputBytes: number
  /** X: bytes a sample that `forwardKeeping` keeps beside input and output. */
  readonly activationBytes: number
  /** Multiply-adds of a sample's forward pass. */
  readonly macs: number
}

export function layerCosts({ layers }: Model): LayerCosts[] {
  return layers.map(costsOf)
}

function costsOf({ name, kind, weights, output, activations: insides, macs: multiplyAdds }: Layer): LayerCosts {
  const parameters = totalSize(weights)
  return {
    name,
    kind,
    parameters,
    weightBytes: parameters * FLOAT_BYTES,
    outputBytes: sizeOf(output) * FLOAT_BYTES,
    activationBytes: insides.reduce((sum, shape) => sum + sizeOf(shape) * FLOAT_BYTES, 0),
    macs: multiplyAdds
  }
}
