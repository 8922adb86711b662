// The program's side of docs/program_protocol.md, with Go's standard library alone, on Linux.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

const hello, variable, layout, initial, gradient, evaluation = 1, 2, 3, 4, 5, 6
const welcome, giveInitial, compute, evaluate, end, refused = 65, 66, 67, 68, 70, 71

// Variable is one variable of the run. Parameters and Gradient are set by Join.
type Variable struct {
	Name       string    `json:"name"`
	Shape      []int     `json:"shape"` // empty: one number
	Decays     bool      `json:"decays"`
	Parameters []float32 `json:"-"` // read-only: a write is a segmentation fault
	Gradient   []float32 `json:"-"`
}

// header is the first 64 bytes of a packet, little-endian.
type header struct {
	Magic                   [4]byte
	Kind, Flags             uint16
	BodySize, Number        uint32
	Step, Slot, Seed, Count uint64
	Value                   float64
	Reserved                uint64
}

// Run is a run that this program takes part in.
type Run struct {
	Step, Slot, Seed uint64
	Rows             []uint32 // of the batch
	WriteInitial     func()
	Evaluate         func() map[string]float64 // nil: the program does not evaluate
	fd               int
}

func fail(code int, sentence string) {
	fmt.Fprintln(os.Stderr, "disttf: "+sentence)
	os.Exit(code)
}

func (r *Run) send(kind uint16, body []byte, count uint64, value float64) {
	var packet bytes.Buffer
	head := header{[4]byte{'D', 'T', 'P', '1'}, kind, 0, uint32(len(body)), 0, r.Step, r.Slot, 0, count, value, 0}
	_ = binary.Write(&packet, binary.LittleEndian, head)
	packet.Write(body)
	if err := syscall.Sendto(r.fd, packet.Bytes(), syscall.MSG_NOSIGNAL, nil); err != nil {
		fail(1, "the task that this program computes for has ended")
	}
}

func (r *Run) sendJSON(kind uint16, value any) {
	body, _ := json.Marshal(value) // numbers and texts, which JSON has
	r.send(kind, body, 0, 0)
}

func (r *Run) receive() (head header, body []byte, fds []int) {
	packet, extra := make([]byte, 64+65536), make([]byte, syscall.CmsgSpace(8))
	size, extraSize, _, _, err := syscall.Recvmsg(r.fd, packet, extra, 0)
	if err != nil || size == 0 {
		fail(1, "the task that this program computes for has ended")
	}
	if binary.Read(bytes.NewReader(packet[:size]), binary.LittleEndian, &head) != nil || string(head.Magic[:]) != "DTP1" || int(head.BodySize) != size-64 {
		fail(1, "a packet is malformed")
	}
	body = packet[64:size]
	if head.Kind == refused {
		fail(int(head.Number), string(body))
	}
	if messages, err := syscall.ParseSocketControlMessage(extra[:extraSize]); err == nil && len(messages) == 1 {
		fds, _ = syscall.ParseUnixRights(&messages[0])
	}
	r.Step, r.Slot, r.Seed = head.Step, head.Slot, head.Seed
	return
}

// Join begins. rowCount: rows of the data set; 0: the program chooses its batches itself.
func (r *Run) Join(client string, rowCount uint32, variables []*Variable) {
	fd, err := strconv.Atoi(os.Getenv("DISTTF_PROGRAM_FD"))
	if err != nil {
		fail(2, "start this program with: disttf launch --program -- COMMAND")
	}
	r.fd = fd
	syscall.CloseOnExec(fd)
	greeting := map[string]any{"protocol": 1, "client": client, "evaluates": r.Evaluate != nil}
	if rowCount > 0 {
		greeting["rows"] = rowCount
	}
	r.sendJSON(hello, greeting)
	size, begin, length := 0, make([]int, len(variables)), make([]int, len(variables))
	for i, v := range variables {
		r.sendJSON(variable, v)
		begin[i], length[i] = size, 1
		for _, n := range v.Shape {
			length[i] *= n
		}
		size += (length[i] + 15) / 16 * 16
	}
	r.send(layout, nil, uint64(len(variables)), 0)
	head, _, fds := r.receive()
	if head.Kind != welcome || len(fds) != 2 {
		fail(1, "WELCOME was expected")
	}
	parameters, err := syscall.Mmap(fds[0], 0, 4*size, syscall.PROT_READ, syscall.MAP_SHARED)
	gradients, err2 := syscall.Mmap(fds[1], 0, 4*size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil || err2 != nil {
		fail(1, "cannot map memory")
	}
	for i, v := range variables {
		v.Parameters = unsafe.Slice((*float32)(unsafe.Pointer(&parameters[4*begin[i]])), length[i])
		v.Gradient = unsafe.Slice((*float32)(unsafe.Pointer(&gradients[4*begin[i]])), length[i])
	}
}

// Next waits for a batch. False: the run is over, and the parameters are the result.
func (r *Run) Next() bool {
	for {
		head, body, _ := r.receive()
		switch head.Kind {
		case compute:
			r.Rows = make([]uint32, len(body)/4)
			_ = binary.Read(bytes.NewReader(body), binary.LittleEndian, r.Rows)
			return true
		case end:
			return false
		case giveInitial:
			r.WriteInitial()
			r.send(initial, nil, 0, 0)
		case evaluate:
			if r.Evaluate == nil {
				r.send(evaluation, nil, 0, 0)
			} else {
				r.sendJSON(evaluation, r.Evaluate())
			}
		}
	}
}

// Push says that the gradients have been written: the means over the batch's rows.
func (r *Run) Push(loss float64) { r.send(gradient, nil, 0, loss) }
