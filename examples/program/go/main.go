// Quadratic fits a plane to points: 100 rows of 4 numbers.
//
//	go build && disttf launch --program -- ./quadratic
package main

import "fmt"

const count, columns = 100, 4

func main() {
	var x [count][columns]float32
	var y [count]float32
	state := uint32(1)
	for i := range x {
		for j := range x[i] {
			state = state*1664525 + 1013904223
			x[i][j] = float32(state>>8)/(1<<23) - 1
			y[i] += float32(j+1) * x[i][j]
		}
	}
	w := &Variable{Name: "w", Shape: []int{columns}, Decays: true}
	b := &Variable{Name: "b", Shape: []int{}}
	errorOf := func(row int) float32 {
		found := b.Parameters[0] - y[row]
		for j, value := range x[row] {
			found += w.Parameters[j] * value
		}
		return found
	}
	zero := func() { clear(w.Gradient); clear(b.Gradient) }
	run := Run{WriteInitial: zero, Evaluate: func() map[string]float64 {
		loss := 0.0
		for row := range x {
			loss += float64(errorOf(row)*errorOf(row)) / count
		}
		return map[string]float64{"loss": loss}
	}}
	run.Join("quadratic.go 1.0", count, []*Variable{w, b})
	for run.Next() {
		zero()
		loss := 0.0
		for _, row := range run.Rows {
			off := errorOf(int(row))
			loss += float64(off*off) / float64(len(run.Rows))
			share := 2 * off / float32(len(run.Rows))
			for j, value := range x[row] {
				w.Gradient[j] += share * value
			}
			b.Gradient[0] += share
		}
		run.Push(loss)
	}
	fmt.Printf("w %.3f\n", w.Parameters)
}
