/** Builds an ONNX graph node by node. Values are named; the batch axis has the symbolic size `N`. */
import { sizeOf } from '../shape.js'
import type { LayerSpec } from '../spec/layer-kinds.js'
import type { Layer, Sample } from '../types.js'
import {
  type AttributeProto,
  DOUBLE,
  encodeModel,
  FLOAT,
  INT64,
  type NodeProto,
  STRING,
  type TensorProto,
  type ValueInfoProto
} from './messages.js'

/** Opset 17 has LayerNormalization, and IR version 8 is that of its release (ONNX 1.12). */
const OPSET = 17
const IR_VERSION = 8

type Attributes = Readonly<Record<string, number | string | readonly number[] | { readonly float: number }>>

/** The weight of a layer with the name, as a value. */
export type WeightOf = (name: string) => string

/** A layer that becomes operators. */
export interface LayerNodes<Spec = LayerSpec> {
  readonly graph: GraphBuilder
  /** Its input. */
  readonly x: string
  readonly spec: Spec
  readonly layer: Layer
  readonly sample: Sample
  readonly weight: WeightOf
  /** Added to the scores of attention with a padding mask. */
  readonly padding: string | undefined
}

/** Sizes of axes; a text is the name of one that varies. */
export type Axes = readonly (number | string)[]

export class GraphBuilder {
  readonly #nodes: NodeProto[] = []
  readonly #initializers: TensorProto[] = []
  readonly #inputs: ValueInfoProto[] = []
  readonly #outputs: ValueInfoProto[] = []

  input(name: string, type: number, shape: Axes): string {
    this.#inputs.push(valueInfo(name, type, shape))
    return name
  }

  /** Makes a value an output of the graph, under a name of its own. */
  output(name: string, value: string, type: number, shape: Axes): void {
    this.#add('Identity', [value], [name], {})
    this.#outputs.push(valueInfo(name, type, shape))
  }

  /** @returns name of the (first) output */
  node(opType: string, inputs: readonly string[], attributes: Attributes = {}): string {
    return this.nodes(opType, inputs, 1, attributes)[0]
  }

  nodes(opType: string, inputs: readonly string[], outputs: number, attributes: Attributes = {}): string[] {
    const at = this.#nodes.length
    const names = Array.from({ length: outputs }, (_, k) => `v${at}_${k}`)
    this.#add(opType, inputs, names, attributes)
    return names
  }

  floats(numbers: Float32Array, shape: readonly number[], name?: string): string {
    return this.#initializer(FLOAT, shape, { rawData: bytesOf(numbers) }, name)
  }

  float(number: number): string {
    return this.floats(Float32Array.of(number), [])
  }

  doubles(numbers: readonly number[], shape: readonly number[]): string {
    return this.#initializer(DOUBLE, shape, { rawData: bytesOf(Float64Array.from(numbers)) })
  }

  integers(numbers: readonly number[], shape: readonly number[] = [numbers.length]): string {
    return this.#initializer(INT64, shape, { rawData: bytesOf(BigInt64Array.from(numbers, BigInt)) })
  }

  strings(texts: readonly string[]): string {
    const stringData = texts.map(text => new TextEncoder().encode(text))
    return this.#initializer(STRING, [texts.length], { stringData })
  }

  /** `0` keeps an axis, and −1 is what remains. */
  reshape(x: string, shape: readonly number[]): string {
    return this.node('Reshape', [x, this.integers(shape)])
  }

  /** The file. @throws ModelError if it would be too large */
  finish(name: string, metadata: Readonly<Record<string, string>>): Uint8Array {
    return encodeModel({
      irVersion: IR_VERSION,
      producerName: 'admb',
      graph: {
        node: this.#nodes,
        name,
        initializer: this.#initializers,
        input: this.#inputs,
        output: this.#outputs
      },
      opsetImport: [{ domain: '', version: OPSET }],
      metadataProps: Object.entries(metadata).map(([key, value]) => ({ key, value }))
    })
  }

  #add(opType: string, input: readonly string[], output: readonly string[], attributes: Attributes): void {
    const attribute = Object.entries(attributes).map(([name, value]): AttributeProto => {
      if (typeof value === 'number') return { name, i: value, type: 2 }
      if (typeof value === 'string') return { name, s: new TextEncoder().encode(value), type: 3 }
      return 'float' in value ? { name, f: value.float, type: 1 } : { name, ints: value, type: 7 }
    })
    this.#nodes.push({ input, output, name: `node${this.#nodes.length}`, opType, attribute })
  }

  #initializer(
    dataType: number,
    dims: readonly number[],
    data: Pick<TensorProto, 'rawData' | 'stringData'>,
    name = `c${this.#initializers.length}_${sizeOf(dims)}`
  ): string {
    this.#initializers.push({ dims, dataType, name, ...data })
    return name
  }
}

function valueInfo(name: string, elemType: number, shape: Axes): ValueInfoProto {
  const dim = shape.map(size => (typeof size === 'number' ? { dimValue: size } : { dimParam: size }))
  return { name, type: { tensorType: { elemType, shape: { dim } } } }
}

function bytesOf({ buffer, byteOffset, byteLength }: Float32Array | Float64Array | BigInt64Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength)
}
