/**
 * Mutation test: without each mechanism for peers that cannot be dialled, the tree does not become whole.
 */
import { describeMutants } from '../../support/mutants.js'

const tabs = { topology: 'overlay', nodes: 6, degree: 3, tabs: 2, tabHosts: 1 } as const

describeMutants('reachability', [
  {
    without: 'regard to what a joining peer can dial',
    changes: [
      {
        file: 'src/overlay/children.js',
        from: 'return (this.#transportsOf(addresses) & dials) !== 0;',
        to: 'return true;'
      }
    ],
    breaks: ['overlay'],
    scenario: tabs
  },
  {
    without: 'room for peers that cannot be passed on',
    changes: [
      {
        file: 'src/overlay/accepting.js',
        from: 'const child = slot === undefined ? state.children.movable() : undefined;',
        to: 'const child = undefined;'
      }
    ],
    breaks: ['overlay'],
    scenario: tabs
  },
  {
    without: 'roots that yield',
    changes: [
      { file: 'src/overlay/accepting.js', from: 'const mayYield = state.isRoot &&', to: 'const mayYield = false &&' }
    ],
    breaks: ['overlay'],
    scenario: { ...tabs, degree: 2, tabs: 1 }
  },
  {
    without: 'younger labels of peers that cannot be dialled',
    changes: [
      {
        file: 'src/overlay/joining.js',
        from: 'if (!same && !state.isReachable && isOlder(state.label, label))',
        to: 'if (false)'
      }
    ],
    breaks: ['overlay'],
    scenario: tabs
  }
])
