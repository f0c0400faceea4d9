/** Colours and axes of the plots, which canvas elements cannot take from the style sheet. */

/** Value of a colour of the style sheet. @param name such as `--ink` */
export function colourOf(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim()
}

/** Value of a `var(--name)`. */
export const resolved = (variable: string) => colourOf(variable.slice(4, -1))

export const axisStyle = () => ({
  stroke: colourOf('--muted'),
  font: '12px system-ui, sans-serif',
  grid: { stroke: colourOf('--grid'), width: 1 },
  ticks: { stroke: colourOf('--rule'), width: 1, size: 5 }
})
