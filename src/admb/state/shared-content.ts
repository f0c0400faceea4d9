/** Contents of large sparse models: those of successive predictors share their arrays. */
import type { Blocks, Content, Digest, IncrementalDigest } from '../../learning/types.js'

/** Elements of all long blocks. */
export interface Elements {
  /** Indices of the elements, in ascending order. */
  readonly indices: Int32Array
  /** Elements at the indices, for each long block. */
  readonly values: readonly Float32Array[]
}

/** Long blocks that several contents share. */
class Shared {
  /** The long blocks of parameters, average and state. */
  readonly blocks: Blocks
  #digests: { readonly digest: Digest; readonly incremental: IncrementalDigest } | undefined
  /** Indices that have changed since the last digest. */
  #changed: Int32Array[] = []

  constructor(blocks: Blocks) {
    this.blocks = blocks
  }

  /** Sets elements. @returns the elements before */
  exchange({ indices, values }: Elements): Elements {
    const before = this.blocks.map((block, b) => {
      const next = values[b]
      const old = new Float32Array(indices.length)
      for (let n = 0; n < old.length; n++) {
        const i = indices[n]
        old[n] = block[i]
        block[i] = next[n]
      }
      return old
    })
    if (this.#digests) this.#changed.push(indices)
    return { indices, values: before }
  }

  digest(digest: Digest, groups: readonly Blocks[]): string {
    const { incremental } = digest
    if (incremental === undefined) return digest(groups)
    if (this.#digests?.digest !== digest) this.#digests = { digest, incremental: incremental(groups) }
    else if (this.#changed.length > 0) this.#digests.incremental.changed(this.blocks[0].length, union(this.#changed))
    this.#changed = []
    return this.#digests.incremental.of(groups)
  }
}

interface Link {
  readonly content: SharedContent
  readonly elements: Elements
}

/**
 * Contents of successive predictors that differ in a few elements and share the arrays of their
 * long blocks. The arrays have the elements of one of them; each other one has the elements that
 * differ, and a link towards it. Reading a content first makes it the one that the arrays have
 * (Baker, "Shallow binding in Lisp 1.5", 1978). So a content is immutable, but its blocks are valid
 * only until another content is read or created.
 */
export class SharedContent implements Content {
  readonly #shared: Shared
  readonly #groups: readonly [parameters: Blocks, average: Blocks, state: Blocks]
  /** The next content on the way to that of the arrays, and the elements that differ from it. */
  #towards: Link | undefined

  private constructor(shared: Shared, groups: readonly [Blocks, Blocks, Blocks]) {
    this.#shared = shared
    this.#groups = groups
  }

  /** A content with copies of the blocks of this length. */
  static copyOf({ parameters, average, state }: Content, length: number): SharedContent {
    const blocks: Float32Array[] = []
    const copied = (group: Blocks) =>
      group.map(block => {
        if (block.length !== length) return block
        const copy = block.slice()
        blocks.push(copy)
        return copy
      })
    const groups = [copied(parameters), copied(average), copied(state)] as const
    return new SharedContent(new Shared(blocks), groups)
  }

  /**
   * A content that differs from this one in some elements.
   * @param short blocks of other lengths than the long ones, in the order of parameters, average
   * and state
   */
  with(elements: Elements, short: Blocks): SharedContent {
    this.#read()
    const { blocks } = this.#shared
    const { length } = blocks[0]
    let next = 0
    const replaced = (group: Blocks) => group.map(block => (block.length === length ? block : short[next++]))
    const [parameters, average, state] = this.#groups
    const content = new SharedContent(this.#shared, [replaced(parameters), replaced(average), replaced(state)])
    this.#towards = { content, elements: this.#shared.exchange(elements) }
    return content
  }

  /** Length of the long blocks. */
  get length(): number {
    return this.#shared.blocks[0].length
  }

  get parameters(): Blocks {
    this.#read()
    return this.#groups[0]
  }

  get average(): Blocks {
    this.#read()
    return this.#groups[1]
  }

  get state(): Blocks {
    this.#read()
    return this.#groups[2]
  }

  digest(digest: Digest): string {
    this.#read()
    return this.#shared.digest(digest, this.#groups)
  }

  /** Gives the arrays the elements of this content. */
  #read(): void {
    const way: SharedContent[] = []
    let at: SharedContent = this
    for (let { content } = at.#towards ?? {}; content; content = at.#towards?.content) {
      way.push(at)
      at = content
    }
    for (const content of way.reverse()) {
      const { elements } = content.#towards as Link
      at.#towards = { content, elements: this.#shared.exchange(elements) }
      content.#towards = undefined
      at = content
    }
  }
}

/** The distinct numbers of ascending lists, in ascending order. */
function union(lists: readonly Int32Array[]): Int32Array {
  if (lists.length === 1) return lists[0]
  const all = new Int32Array(lists.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const list of lists) {
    all.set(list, at)
    at += list.length
  }
  return all.sort()
}
